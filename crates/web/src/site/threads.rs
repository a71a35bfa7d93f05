//! Threads: the list, and the page of one with its chapters.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use domain::thread::ThreadStatus;
use http_kit::{NamedQuery, NoParameters, Parameters, PathId, Problem, RawQuery, Shared};
use presentation::{MarketTile, amounts, find_thread, markdown, next_end, next_turn};
use store::StoreError;
use store::catalog::Organization;
use store::public::{
    ChapterRow, Listed, ListedMarket, MarketFilter, MarketSort, Order, PageRange, ThreadFilter, ThreadRow,
    ThreadSort, list_chapters, list_markets, list_threads,
};

use super::home::{ThreadLine, pairs};
use super::shell::{Reader, Section, Shell, cached};

/// Maximum number of markets on a thread's page.
const MOST_MARKETS: u32 = 100;

/// The page of the list.
#[derive(Debug)]
pub struct ThreadsQuery(PageRange);

impl Parameters for ThreadsQuery {
    const NAMES: &'static [&'static str] = &["offset"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self(asked.extent()?))
    }
}

/// A thread in the list, with the beginning of its description.
#[derive(Debug)]
struct ThreadTile {
    line: ThreadLine,
    about: String,
}

#[derive(Debug, Template)]
#[template(path = "site/threads.html")]
struct ThreadsPage {
    shell: Shell,
    threads: Vec<ThreadTile>,
    previous: Option<String>,
    next: Option<String>,
}

/// `GET /threads`.
pub async fn list(
    State(app): State<Shared>,
    reader: Reader,
    query: NamedQuery<ThreadsQuery>,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: ThreadsQuery(window), name } = query;
    let read = async || {
        let read: Result<Listed<ThreadRow>, StoreError> = app
            .ctx
            .store
            .read(window, |tx, window| {
                Box::pin(async move {
                    list_threads(tx, &ThreadFilter::default(), ThreadSort::TotalVolume, Order::Desc, *window)
                        .await
                })
            })
            .await;
        let Listed { items, total } = read?;
        let until = next_turn(items.iter(), app.ctx.now());
        let url = |offset: u32| {
            if offset == 0 { "/threads".to_owned() } else { format!("/threads?offset={offset}") }
        };
        let PageRange { limit, offset } = window;
        let page = ThreadsPage {
            shell: Shell::new(&reader, Section::Threads, "Threads")
                .described("A thread follows one story through several markets.")
                .listed_at(&app, &url(offset)),
            threads: items.into_iter().map(ThreadTile::new).collect(),
            previous: (offset > 0).then(|| url(offset.saturating_sub(limit))),
            next: (u64::from(offset) + u64::from(limit) < total).then(|| url(offset + limit)),
        };
        Ok((page, until))
    };
    cached(&app, &reader, &name, read).await
}

impl ThreadTile {
    fn new(row: ThreadRow) -> Self {
        let about = row.thread.description.as_deref().unwrap_or_default();
        let about = about.split("\n\n").next().unwrap_or_default().to_owned();
        Self { line: ThreadLine::new(row), about }
    }
}

/// The markets of a chapter.
#[derive(Debug)]
struct ChapterPart {
    /// `None` for markets without a chapter.
    title: Option<String>,
    tiles: Vec<MarketTile>,
}

/// The organization of a thread.
#[derive(Debug)]
struct OwnerLink {
    id: String,
    name: String,
}

#[derive(Debug, Template)]
#[template(path = "site/thread.html")]
struct ThreadPage {
    shell: Shell,
    title: String,
    category: Option<String>,
    badge: (&'static str, &'static str),
    about: Option<String>,
    owner: Option<OwnerLink>,
    markets: String,
    volume: String,
    traders: String,
    starts: Option<String>,
    ends: Option<String>,
    chapters: Vec<ChapterPart>,
    /// Number of markets that are not shown.
    more: u64,
    url: String,
}

/// `GET /threads/{id}`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
) -> Result<Response, Problem> {
    let read = async || {
        let row = find_thread(&app.ctx, &id).await?.ok_or_else(Problem::not_found)?;
        let (listed, chapters, owner) = read_parts(&app, &row).await?;
        let now = app.ctx.now();
        let turn = next_turn(std::iter::once(&row), now);
        let end = next_end(listed.items.iter().map(|listed| &listed.market), now);
        let page = ThreadPage::new(&app, &reader, row, (listed, chapters, owner), now);
        Ok((page, turn.into_iter().chain(end).min()))
    };
    cached(&app, &reader, &query.name, read).await
}

type Parts = (Listed<ListedMarket>, Vec<ChapterRow>, Option<Organization>);

async fn read_parts(app: &Shared, row: &ThreadRow) -> Result<Parts, StoreError> {
    app.ctx
        .store
        .read((row.thread.id, row.thread.organization_id), |tx, (id, organization_id)| {
            Box::pin(async move {
                let filter = MarketFilter { thread_id: Some(*id), ..MarketFilter::default() };
                let extent = PageRange { limit: MOST_MARKETS, offset: 0 };
                let listed = list_markets(tx, &filter, MarketSort::TotalVolume, Order::Desc, extent).await?;
                let owner = match organization_id {
                    Some(id) => store::catalog::find_organization(tx, *id).await?,
                    None => None,
                };
                Ok((listed, list_chapters(tx, *id).await?, owner))
            })
        })
        .await
}

impl ThreadPage {
    fn new(
        app: &Shared,
        reader: &Reader,
        row: ThreadRow,
        (listed, chapters, owner): Parts,
        now: Timestamp,
    ) -> Self {
        let ThreadRow { thread, totals, .. } = row;
        let path = format!("/threads/{}", thread.id);
        let more = listed.total.saturating_sub(listed.items.len() as u64);
        let badge = match ThreadStatus::at(now, thread.start_time, thread.end_time) {
            ThreadStatus::Upcoming => ("is-info", "Upcoming"),
            ThreadStatus::Active => ("is-open", "Live"),
            ThreadStatus::Closed => ("is-wait", "Closed"),
        };
        let markets = amounts::count(totals.markets, "market");
        let volume = presentation::market_face::dollars(totals.volume);
        Self {
            shell: Shell::new(reader, Section::Threads, thread.title.clone())
                .described(&format!("{markets}, {volume} traded."))
                .listed_at(app, &path),
            title: thread.title,
            category: thread.category,
            badge,
            about: markdown::about(thread.description.as_deref()),
            owner: owner.map(|owner| OwnerLink { id: owner.id.to_string(), name: owner.name }),
            markets,
            volume,
            traders: amounts::grouped(totals.participants),
            starts: thread.start_time.map(amounts::day),
            ends: thread.end_time.map(amounts::day),
            chapters: by_chapter(listed.items, &chapters, now),
            more,
            url: format!("{}{path}", app.app_url),
        }
    }
}

/// Sorts the markets into their chapters. Those without one come last.
fn by_chapter(listed: Vec<ListedMarket>, chapters: &[ChapterRow], now: Timestamp) -> Vec<ChapterPart> {
    let tiles: Vec<_> = pairs(listed)
        .iter()
        .map(|(market, outcomes)| (market.chapter_id.clone(), MarketTile::new(market, outcomes, now)))
        .collect();
    let of = |id: Option<&String>| {
        let matching = tiles.iter().filter(|(chapter, _)| chapter.as_ref() == id);
        matching.map(|(_, tile)| tile.clone()).collect::<Vec<_>>()
    };
    let mut parts: Vec<_> = chapters
        .iter()
        .map(|row| ChapterPart { title: Some(row.chapter.title.clone()), tiles: of(Some(&row.chapter.id)) })
        .collect();
    let rest = of(None);
    if !rest.is_empty() {
        parts.push(ChapterPart { title: None, tiles: rest });
    }
    parts
}
