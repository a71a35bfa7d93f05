//! The leaderboard.

use app::leaderboard::Ranked;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::UsdcDelta;
use http_kit::{NamedQuery, Parameters, Problem, RawQuery, Shared};
use presentation::amounts;
use store::public::{LeaderSort, PageRange, Timeframe};

use super::markets::ListLink;
use super::shell::{Reader, Section, Shell, cached};
use super::traders::Account;

/// The values of `timeframe` with their labels, as in `GET /api/leaderboard`. The first one is the default.
const TIMEFRAMES: &[(&str, Timeframe)] = &[
    ("all", Timeframe::All),
    ("24h", Timeframe::OneDay),
    ("7d", Timeframe::SevenDays),
    ("30d", Timeframe::ThirtyDays),
];
const TIMEFRAME_LABELS: [(&str, &str); 4] =
    [("24h", "Day"), ("7d", "Week"), ("30d", "Month"), ("all", "All")];
const SORTS: &[(&str, LeaderSort)] =
    &[("total", LeaderSort::Total), ("realized", LeaderSort::Realized), ("volume", LeaderSort::Volume)];
const SORT_LABELS: [(&str, &str); 3] =
    [("total", "Profit"), ("realized", "Realized profit"), ("volume", "Volume")];

/// The parameters `timeframe`, `sort` and `offset`.
#[derive(Debug)]
pub struct LeaderboardQuery {
    timeframe: Timeframe,
    sort: LeaderSort,
    window: PageRange,
}

impl Parameters for LeaderboardQuery {
    const NAMES: &'static [&'static str] = &["timeframe", "sort", "offset"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let (timeframe, sort) = (asked.word("timeframe", TIMEFRAMES), asked.word("sort", SORTS));
        let window = asked.extent();
        Some(Self { timeframe: timeframe?, sort: sort?, window: window? })
    }
}

/// An account's row.
#[derive(Debug)]
struct LeaderLine {
    rank: u64,
    account: Account,
    profit: String,
    is_loss: bool,
    realized: String,
    volume: String,
    trades: String,
}

impl LeaderLine {
    fn new(row: &Ranked) -> Self {
        let Ranked { rank, leader, unrealized_pnl, name } = row;
        let total = UsdcDelta(leader.realized_pnl.0.saturating_add(unrealized_pnl.0));
        Self {
            rank: *rank,
            account: Account { name: name.clone(), ..Account::new(leader.account) },
            profit: amounts::profit(total),
            is_loss: total.0 < 0,
            realized: amounts::profit(leader.realized_pnl),
            volume: amounts::dollars(leader.volume),
            trades: amounts::grouped(leader.trade_count),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/leaderboard.html")]
struct LeaderboardPage {
    shell: Shell,
    timeframes: Vec<ListLink>,
    sorts: Vec<ListLink>,
    leaders: Vec<LeaderLine>,
    previous: Option<String>,
    next: Option<String>,
}

/// `GET /leaderboard`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    query: NamedQuery<LeaderboardQuery>,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: LeaderboardQuery { timeframe, sort, window }, name } = query;
    let read = async || {
        let listed = app::leaderboard::leaderboard(&app.ctx.for_public(), timeframe, sort, window).await?;
        let frame = TIMEFRAMES.iter().find(|(_, it)| *it == timeframe).map_or("all", |(word, _)| *word);
        let key = SORTS.iter().find(|(_, it)| *it == sort).map_or("total", |(word, _)| *word);
        let url = |frame: &str, key: &str, offset: u32| match offset {
            0 => format!("/leaderboard?timeframe={frame}&sort={key}"),
            _ => format!("/leaderboard?timeframe={frame}&sort={key}&offset={offset}"),
        };
        let link =
            |label: &str, url: String, is_current| ListLink { label: label.to_owned(), url, is_current };
        let PageRange { limit, offset } = window;
        let page = LeaderboardPage {
            shell: Shell::new(&reader, Section::Leaderboard, "Leaderboard")
                .described("The accounts with the highest profit and volume, from public data of the chain.")
                .listed_at(&app, "/leaderboard"),
            timeframes: TIMEFRAME_LABELS
                .map(|(word, label)| link(label, url(word, key, 0), word == frame))
                .into(),
            sorts: SORT_LABELS.map(|(word, label)| link(label, url(frame, word, 0), word == key)).into(),
            leaders: listed.items.iter().map(LeaderLine::new).collect(),
            previous: (offset > 0).then(|| url(frame, key, offset.saturating_sub(limit))),
            next: (u64::from(offset) + u64::from(limit) < listed.total)
                .then(|| url(frame, key, offset + limit)),
        };
        Ok((page, None))
    };
    cached(&app, &reader, &name, read).await
}
