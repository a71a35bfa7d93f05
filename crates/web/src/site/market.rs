//! The page of a market.

use app::markets::Range;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::market::MarketStatus;
use domain::page::Page;
use domain::{Timestamp, Usdc, Wad};
use http_kit::{NamedQuery, Parameters, PathId, Problem, RawQuery, Shared};
use presentation::market_face::Shown;
use presentation::{
    Chart, MarketFace, Scale, amounts, find_market, markdown, market_face, next_end, numbers,
};
use store::StoreError;
use store::catalog::{Organization, Thread};
use store::markets::{Market, Outcome};
use store::movements::{Movement, TradeFilter};
use store::public::{Holder, list_holders};

use super::outcomes::{OutcomesPart, OutcomesQuery};
use super::shell::{Reader, Section, Shell, cached};
use super::traders::{Account, TradeLine};
use super::trading::TicketPart;

const MOST_TRADES: u32 = 10;
const MOST_HOLDERS: u32 = 10;
/// The width, in pixels, for which the suggested height of an iframe is computed.
const EMBED_WIDTH: u32 = 480;

/// The values of `range` with their labels. The first one is the default.
const RANGES: &[(&str, Range)] = &[
    ("7d", Range::SevenDays),
    ("1h", Range::OneHour),
    ("24h", Range::OneDay),
    ("30d", Range::ThirtyDays),
    ("all", Range::All),
];
/// The ranges in the order in which the page shows them.
const RANGE_LABELS: [(&str, &str, &str); 5] = [
    ("1h", "1H", "last hour"),
    ("24h", "1D", "last day"),
    ("7d", "1W", "last seven days"),
    ("30d", "1M", "last thirty days"),
    ("all", "All", "whole time"),
];
const SCALES: &[(&str, Scale)] = &[("fit", Scale::Fitted), ("full", Scale::FromZero)];

/// The parameters of the chart, `range` and `scale`, and those of the outcomes.
#[derive(Debug)]
pub struct MarketQuery {
    range: Range,
    scale: Scale,
    outcomes: OutcomesQuery,
}

impl Parameters for MarketQuery {
    const NAMES: &'static [&'static str] = {
        let [outcome, find, page] = OutcomesQuery::NAMES;
        &["range", "scale", outcome, find, page]
    };

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let (range, scale) = (asked.word("range", RANGES), asked.word("scale", SCALES));
        let outcomes = OutcomesQuery::read(asked);
        Some(Self { range: range?, scale: scale?, outcomes })
    }
}

/// A link to another range or scale.
#[derive(Debug)]
struct ChartLink {
    label: &'static str,
    url: String,
    is_current: bool,
}

/// The chart of the page.
#[derive(Debug)]
struct ChartPart {
    lines: String,
    percents: [i64; 3],
    times: Vec<String>,
    /// Colors and names.
    legend: Vec<(usize, String)>,
    from_ms: i64,
    to_ms: i64,
    label: String,
}

impl ChartPart {
    fn new(chart: &Chart, range: &str) -> Self {
        let (from, to) = chart.span();
        let legend = chart.legend().into_iter().map(|(colour, label)| (colour, label.to_owned()));
        Self {
            lines: chart.marked_lines(),
            percents: chart.percents(),
            times: chart.times(),
            legend: legend.collect(),
            from_ms: from.ms(),
            to_ms: to.ms(),
            label: format!("Prices of the {range}"),
        }
    }
}

/// A holder in the list of the largest.
#[derive(Debug)]
struct HolderLine {
    account: Account,
    outcome: String,
    tokens: String,
    /// The value at the current price.
    value: String,
}

/// A message above the rules.
#[derive(Debug)]
struct Notice {
    kind: &'static str,
    heading: String,
    text: String,
    tx_hash: Option<String>,
}

/// A link to the thread or the owner of the market.
#[derive(Debug)]
struct ParentLink {
    label: String,
    url: String,
}

#[derive(Debug, Template)]
#[template(path = "site/market.html")]
struct MarketPage {
    shell: Shell,
    market: MarketFace,
    /// Lists every outcome, in pages.
    outcomes: OutcomesPart,
    /// The status as the API spells it.
    status: &'static str,
    badge: (&'static str, &'static str),
    category: Option<String>,
    traders: String,
    notice: Option<Notice>,
    /// The rules as HTML.
    rules: Option<String>,
    source: Option<String>,
    parents: Vec<ParentLink>,
    ends_at: String,
    ends_iso: String,
    fee: String,
    change: Option<i64>,
    chart: Option<ChartPart>,
    ranges: Vec<ChartLink>,
    scales: Vec<ChartLink>,
    trades: Vec<TradeLine>,
    holders: Vec<HolderLine>,
    url: String,
    embed: String,
    curl: String,
    /// `None` if the reader has no session, or nobody can trade.
    ticket: Option<TicketPart>,
}

/// The rows beside the market itself.
struct Rows {
    trades: Vec<Movement>,
    holders: Vec<Holder>,
    participants: u64,
    thread: Option<Thread>,
    organization: Option<Organization>,
}

/// `GET /markets/{id}`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    PathId(id): PathId,
    query: NamedQuery<MarketQuery>,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: chosen, name } = query;
    let read = async || {
        let (market, outcomes) = find_market(&app.ctx, &id).await?.ok_or_else(Problem::not_found)?;
        let now = app.ctx.now();
        let rows = read_rows(&app, &market).await?;
        let face = MarketFace::new(&market, &outcomes, now);
        let pair = (&market, outcomes.as_slice());
        let chart = Chart::read_range(&app.ctx, pair, &face, chosen.range, chosen.scale).await?;
        let until = next_end(std::iter::once(&market), now);
        let change = match chosen.range {
            Range::OneHour | Range::OneDay => None,
            _ => chart.as_ref().and_then(Chart::change_in_a_day),
        };
        let all = Shown::list(&market, &outcomes);
        let page = MarketPage::new(&app, &reader, (market, outcomes), face, rows, now);
        let label = RANGE_LABELS.iter().find(|(word, ..)| Range::of_word(word) == Some(chosen.range));
        let chart = chart.map(|chart| ChartPart::new(&chart, label.map_or("", |(_, _, label)| *label)));
        let ticket = match &reader.person {
            Some(person) if reader.stop.is_none() && page.status == MarketStatus::Open.as_str() => {
                let (id, first) = (page.market.id, chosen.outcomes.chosen);
                Some(TicketPart::read(&app, person, id, (&all, first), &reader).await?)
            }
            _ => None,
        };
        let held = |index: u8| ticket.as_ref().and_then(|ticket| ticket.held(index));
        let path = format!("/markets/{}", page.market.id);
        let outcomes = OutcomesPart::new(&path, &all, &chosen.outcomes, held);
        Ok((MarketPage { change, chart, outcomes, ticket, ..page.with_links(&chosen) }, until))
    };
    cached(&app, &reader, &name, read).await
}

async fn read_rows(app: &Shared, market: &Market) -> Result<Rows, StoreError> {
    let input = (market.id, market.thread_id, market.organization_id);
    app.ctx
        .store
        .read(input, |tx, (id, thread, organization)| {
            Box::pin(async move {
                let page = Page { limit: MOST_TRADES, after: None };
                let listed = store::public::get_market(tx, *id).await?;
                Ok(Rows {
                    trades: store::movements::list_trades(tx, *id, &TradeFilter::default(), &page).await?,
                    holders: list_holders(tx, *id, MOST_HOLDERS).await?,
                    participants: listed.map_or(0, |listed| listed.participants),
                    thread: match thread {
                        Some(thread) => store::catalog::find_thread(tx, *thread).await?,
                        None => None,
                    },
                    organization: match organization {
                        Some(organization) => store::catalog::find_organization(tx, *organization).await?,
                        None => None,
                    },
                })
            })
        })
        .await
}

impl MarketPage {
    fn new(
        app: &Shared,
        reader: &Reader,
        (market, outcomes): (Market, Vec<Outcome>),
        face: MarketFace,
        rows: Rows,
        now: Timestamp,
    ) -> Self {
        let path = format!("/markets/{}", market.id);
        let prices = face.outcomes.iter().map(|it| format!("{} {}", it.label, it.percent));
        let description = format!("{}. {}.", prices.collect::<Vec<_>>().join(", "), face.standing);
        let shell = Shell::new(reader, Section::Markets, face.question.clone())
            .described(&description)
            .listed_at(app, &path)
            .with_card(app, &path, &face.version());
        let status = market.status_at(now);
        let label = |index: u8| outcomes.get(usize::from(index)).map_or("", |outcome| outcome.label.as_str());
        let price = |index: u8| {
            let outcome = outcomes.get(usize::from(index));
            outcome.map_or(0, |outcome| market_face::ppm(numbers::of_outcome(&market, outcome)))
        };
        let holders = rows
            .holders
            .iter()
            .map(|holder| HolderLine::new(holder, label(holder.outcome_index), price(holder.outcome_index)));
        let trades = rows
            .trades
            .iter()
            .take(MOST_TRADES as usize)
            .map(|trade| TradeLine::new(trade, label(trade.outcome_index)));
        Self {
            status: status.as_str(),
            badge: badge_of(status),
            category: market.category.clone(),
            traders: amounts::count(rows.participants, "trader"),
            notice: notice_of(&market, &face, status),
            rules: markdown::about(market.description.as_deref()),
            source: market.source_url.clone(),
            parents: parents_of(rows.thread.as_ref(), rows.organization.as_ref()),
            ends_at: amounts::minute(market.end_time),
            ends_iso: market.end_time.to_string(),
            fee: percent_of(market.fee_bps),
            change: None,
            chart: None,
            outcomes: OutcomesPart::new(&path, &[], &OutcomesQuery::default(), |_| None),
            ranges: Vec::new(),
            scales: Vec::new(),
            trades: trades.collect(),
            holders: holders.collect(),
            url: format!("{}{path}", app.app_url),
            embed: embed_of(app, &face, market.description.is_some()),
            curl: curl_of(app, &face),
            ticket: None,
            market: face,
            shell,
        }
    }

    /// Adds the links to other ranges and scales.
    fn with_links(self, chosen: &MarketQuery) -> Self {
        let word = |known: &[(&'static str, Scale)], scale| {
            known.iter().find(|(_, it)| *it == scale).map_or("fit", |(word, _)| *word)
        };
        let url = |range: &str, scale: &str| {
            format!("/markets/{}?range={range}&scale={scale}#chart", self.market.id)
        };
        let scale = word(SCALES, chosen.scale);
        let range = RANGES.iter().find(|(_, it)| *it == chosen.range).map_or("7d", |(word, _)| *word);
        let ranges = RANGE_LABELS.map(|(word, label, _)| ChartLink {
            label,
            url: url(word, scale),
            is_current: word == range,
        });
        let scales = [("fit", "Fit"), ("full", "0 to 100")].map(|(word, label)| ChartLink {
            label,
            url: url(range, word),
            is_current: word == scale,
        });
        Self { ranges: ranges.into(), scales: scales.into(), ..self }
    }
}

impl HolderLine {
    fn new(holder: &Holder, outcome: &str, ppm: u32) -> Self {
        Self {
            account: Account::new(holder.account),
            outcome: outcome.to_owned(),
            tokens: amounts::tokens(holder.tokens),
            value: amounts::dollars(value_at(holder.tokens, ppm)),
        }
    }
}

/// Returns the value of tokens at a price in millionths, rounded down.
pub fn value_at(tokens: Wad, ppm: u32) -> Usdc {
    // Tokens have 18 decimals, and a price in millionths is the atomic USDC of one token.
    let atomic = tokens.0.saturating_mul(alloy_primitives::U256::from(ppm)) / Wad::ONE.0;
    Usdc::from_atomic(u64::try_from(atomic).unwrap_or(u64::MAX))
}

/// Returns the style and the label of a status.
const fn badge_of(status: MarketStatus) -> (&'static str, &'static str) {
    match status {
        MarketStatus::Open => ("is-open", "Open"),
        MarketStatus::Frozen => ("is-wait", "Trading stopped"),
        MarketStatus::Resolved => ("is-good", "Resolved"),
        MarketStatus::Cancelled => ("is-info", "Cancelled"),
    }
}

fn notice_of(market: &Market, face: &MarketFace, status: MarketStatus) -> Option<Notice> {
    let tx_hash = market.resolution_tx_hash.map(|hash| format!("{hash:#x}"));
    let at = market.resolved_at.map(amounts::minute).unwrap_or_default();
    match status {
        MarketStatus::Open if market.quarantined_at.is_some() => Some(Notice {
            kind: "is-wait",
            heading: "Trading is paused".to_owned(),
            text: "The service could not apply an event of this market. Its operator has been told."
                .to_owned(),
            tx_hash: None,
        }),
        MarketStatus::Open => None,
        MarketStatus::Frozen => Some(Notice {
            kind: "is-wait",
            heading: "Trading has stopped".to_owned(),
            text: "The result is not decided yet. Positions keep their value until it is.".to_owned(),
            tx_hash: None,
        }),
        MarketStatus::Resolved => Some(Notice {
            kind: "is-good",
            heading: face.standing.clone(),
            text: match &market.resolution_source {
                Some(source) => format!("Resolved {at}. Source: {source}"),
                None => format!("Resolved {at}."),
            },
            tx_hash,
        }),
        MarketStatus::Cancelled => Some(Notice {
            kind: "is-info",
            heading: "Cancelled".to_owned(),
            text: format!("Cancelled {at}. Each token pays its reference price."),
            tx_hash,
        }),
    }
}

fn parents_of(thread: Option<&Thread>, organization: Option<&Organization>) -> Vec<ParentLink> {
    let thread = thread.map(|it| ParentLink { label: it.title.clone(), url: format!("/threads/{}", it.id) });
    let owner = organization
        .map(|it| ParentLink { label: it.name.clone(), url: format!("/organizations/{}", it.id) });
    thread.into_iter().chain(owner).collect()
}

/// Formats basis points, e.g. `1%` or `0.25%`.
fn percent_of(bps: u16) -> String {
    format!("{}%", numbers::decimal(&bps, 2))
}

fn embed_of(app: &Shared, face: &MarketFace, has_about: bool) -> String {
    let height = presentation::page_height::of_market(face, has_about, EMBED_WIDTH);
    format!(
        "<iframe src=\"{}/embed/markets/{}\"\n  width=\"100%\" height=\"{height}\" title=\"Market on Foretell\"></iframe>",
        app.app_url, face.id
    )
}

fn curl_of(app: &Shared, face: &MarketFace) -> String {
    format!("curl '{}/api/markets/{}/quote?outcomeIndex=0&action=buy&amount=50'", app.app_url, face.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_tokens_is_rounded_down_to_the_atomic_unit() {
        let tokens = "1999999999999999999".parse::<Wad>().unwrap();
        assert_eq!(value_at(tokens, 500_000), Usdc::from_atomic(999_999));
        assert_eq!(value_at(Wad::ONE, 1_000_000), Usdc::from_whole(1));
    }

    #[test]
    fn fees_are_percents() {
        assert_eq!([0, 25, 100, 150].map(percent_of), ["0%", "0.25%", "1%", "1.5%"]);
    }
}
