//! Threads and their chapters.

use axum::extract::State;
use axum::response::Response;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use domain::{Cents, Timestamp};
use http_kit::{NamedQuery, NoParameters, Parameters, PathId, Problem, PublicCode, RawQuery, Shared};
use presentation::{find_thread, next_turn};
use serde::Serialize;
use store::StoreError;
use store::public::{
    ChapterRow, MAX_TAGS, Order, PageRange, ThreadFilter, ThreadRow, ThreadSort, ThreadWhen,
};
use utoipa::ToSchema;

use super::answer::{Meta, Pagination};
use super::lists::{self, ORDERS};
use super::thread_record::{ThreadDetail, ThreadRecord};

/// A page of threads.
#[derive(Debug, Serialize, ToSchema)]
pub struct ThreadsAnswer {
    threads: Vec<ThreadRecord>,
    pagination: Pagination,
}

/// One thread.
#[derive(Debug, Serialize, ToSchema)]
pub struct ThreadAnswer {
    thread: ThreadDetail,
}

/// A thread's chapters.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChaptersAnswer {
    chapters: Vec<ChapterRecord>,
}

/// A chapter of a thread.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Chapter)]
#[serde(rename_all = "camelCase")]
struct ChapterRecord {
    id: String,
    thread_id: ThreadId,
    title: String,
    /// The position in the thread. The first is 0.
    position: u32,
    market_count: u64,
    /// USDC traded in its markets.
    total_volume: Cents,
    /// active if one of its markets is open, otherwise closed.
    status: &'static str,
}

/// The filter, sort order and page of a list of threads.
#[derive(Debug)]
pub struct ThreadsSelection {
    when: Option<ThreadWhen>,
    filter: ThreadFilter,
    sort: ThreadSort,
    order: Order,
    window: PageRange,
}

impl ThreadsSelection {
    /// Restricts the list to an organization.
    pub fn of_organization(mut self, id: OrganizationId) -> Self {
        self.filter.organization_id = Some(id);
        self
    }

    /// Restricts the list to a partner.
    pub fn of_partner(mut self, id: PartnerId) -> Self {
        self.filter.partner_id = Some(id);
        self
    }
}

/// The values of `status`. The first one is the default.
const STATUSES: &[(&str, Option<ThreadWhen>)] = &[
    ("active", Some(ThreadWhen::Active)),
    ("upcoming", Some(ThreadWhen::Upcoming)),
    ("closed", Some(ThreadWhen::Closed)),
    ("all", None),
];
const SORTS: &[(&str, ThreadSort)] = &[
    ("created_at", ThreadSort::CreatedAt),
    ("start_time", ThreadSort::StartTime),
    ("total_volume", ThreadSort::TotalVolume),
];

/// The parameters of `GET /api/threads`.
#[derive(Debug)]
pub struct ThreadsQuery(ThreadsSelection);

impl Parameters for ThreadsQuery {
    const NAMES: &'static [&'static str] =
        &["status", "category", "tags", "q", "limit", "offset", "sortBy", "sortOrder"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        const TAGS: &str = "must be a comma-separated list of 1 to 20 tags that are not empty";
        let tags = asked.with("tags", TAGS, |text| {
            let tags: Vec<_> = text.split(',').map(|tag| tag.trim().to_owned()).collect();
            (tags.len() <= MAX_TAGS && tags.iter().all(|tag| !tag.is_empty())).then_some(tags)
        });
        let filter = ThreadFilter {
            category: asked.text("category"),
            tags: tags.unwrap_or_default(),
            text: lists::text(asked),
            ..ThreadFilter::default()
        };
        chosen(asked, filter).map(Self)
    }
}

/// The parameters of a list of threads within an organization or a partner.
#[derive(Debug)]
pub struct ThreadsWithinQuery(pub ThreadsSelection);

impl Parameters for ThreadsWithinQuery {
    const NAMES: &'static [&'static str] = &["status", "limit", "offset", "sortBy", "sortOrder"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        chosen(asked, ThreadFilter::default()).map(Self)
    }
}

fn chosen(asked: &mut RawQuery<'_>, filter: ThreadFilter) -> Option<ThreadsSelection> {
    let when = asked.word("status", STATUSES);
    let (sort, order) = (asked.word("sortBy", SORTS), asked.word("sortOrder", ORDERS));
    let window = asked.extent();
    Some(ThreadsSelection { when: when?, filter, sort: sort?, order: order?, window: window? })
}

/// The parameter `includeMarkets`.
#[derive(Debug)]
pub struct ThreadQuery {
    include_markets: bool,
}

impl Parameters for ThreadQuery {
    const NAMES: &'static [&'static str] = &["includeMarkets"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self { include_markets: asked.flag("includeMarkets").unwrap_or(false) })
    }
}

/// `GET /api/threads`.
#[utoipa::path(
    get, path = "/api/threads", operation_id = "listThreads", tag = "Threads", summary = "List threads",
    description = "Threads. Default: active threads, newest first. Equal threads are ordered by id. With q \
        the best match comes first and sortBy is ignored.",
    params(
        ("status" = Option<String>, Query, pattern = "^(active|upcoming|closed|all)$", example = "active",
            description = "active (the default), upcoming, closed, all."),
        ("category" = Option<String>, Query, min_length = 1, example = "sports", description = "Threads of this category."),
        ("tags" = Option<String>, Query, min_length = 1, example = "derby,cup", description = "Threads \
            with any of these tags: a comma-separated list of at most 20."),
        ("q" = Option<String>, Query, min_length = 1, max_length = 200, example = "derby",
            description = "Threads whose title, tags or category contain every word of this text, or words that begin with it."),
        ("sortBy" = Option<String>, Query, pattern = "^(created_at|start_time|total_volume)$",
            description = "created_at (the default), start_time, total_volume."),
        ("sortOrder" = Option<String>, Query, pattern = "^(asc|desc)$", description = "desc (the default) or asc."),
    ),
    responses((status = 200, description = "A page of threads.", body = ThreadsAnswer)),
)]
pub async fn list(
    State(app): State<Shared>,
    query: NamedQuery<ThreadsQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: ThreadsQuery(chosen), name } = query;
    meta.kept(&app, &name, async || listed(&app, chosen).await).await
}

/// Returns a page of threads, and when it expires even if nothing changes.
pub async fn listed(
    app: &Shared,
    chosen: ThreadsSelection,
) -> Result<(ThreadsAnswer, Option<Timestamp>), Problem> {
    let (window, now) = (chosen.window, app.ctx.now());
    let filter = ThreadFilter { when: chosen.when.map(|when| (when, now)), ..chosen.filter };
    let read: Result<_, StoreError> = app
        .ctx
        .store
        .for_public()
        .read((filter, chosen.sort, chosen.order), move |tx, (filter, sort, order)| {
            Box::pin(store::public::list_threads(tx, filter, *sort, *order, window))
        })
        .await;
    let listed = read?;
    let until = next_turn(listed.items.iter(), now);
    let pagination = Pagination::new(window, listed.items.len(), listed.total);
    let threads = listed.items.into_iter().map(|row| ThreadRecord::new(row, now)).collect();
    Ok((ThreadsAnswer { threads, pagination }, until))
}

/// `GET /api/threads/{id}`.
#[utoipa::path(
    get, path = "/api/threads/{id}", operation_id = "getThread", tag = "Threads", summary = "Read one thread",
    description = "The thread, optionally with its markets.",
    params(
        ("id" = ThreadId, Path, description = "The thread's id."),
        ("includeMarkets" = Option<bool>, Query, description = "If true, the newest 100 markets are included. hasMoreMarkets is true if there are more. Default: false."),
    ),
    responses((status = 200, description = "The thread.", body = ThreadAnswer)),
    extensions(("x-error-codes" = json!(["THREAD_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<ThreadQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let include_markets = query.parameters.include_markets;
    let read = async || {
        let (row, now) = (get_thread(&app, &id).await?, app.ctx.now());
        let until = next_turn(std::iter::once(&row), now);
        let markets = match include_markets {
            true => Some(lists::within(&app, row.thread.id).await?),
            false => None,
        };
        Ok((ThreadAnswer { thread: ThreadDetail::new(row, markets, now) }, until))
    };
    meta.kept(&app, &query.name, read).await
}

/// `GET /api/threads/{id}/chapters`.
#[utoipa::path(
    get, path = "/api/threads/{id}/chapters", operation_id = "listThreadChapters", tag = "Threads",
    summary = "List a thread's chapters",
    description = "The chapters into which the thread's markets are grouped, by position.",
    params(("id" = ThreadId, Path, description = "The thread's id.")),
    responses((status = 200, description = "The chapters.", body = ChaptersAnswer)),
    extensions(("x-error-codes" = json!(["THREAD_NOT_FOUND"]))),
)]
pub async fn chapters(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let id = get_thread(&app, &id).await?.thread.id;
        let read: Result<Vec<ChapterRow>, StoreError> = app
            .ctx
            .store
            .for_public()
            .read(id, |tx, id| Box::pin(store::public::list_chapters(tx, *id)))
            .await;
        Ok((ChaptersAnswer { chapters: read?.into_iter().map(ChapterRecord::new).collect() }, None))
    };
    meta.kept(&app, &query.name, read).await
}

impl ChapterRecord {
    fn new(row: ChapterRow) -> Self {
        let ChapterRow { chapter, totals, open_markets } = row;
        Self {
            id: chapter.id,
            thread_id: chapter.thread_id,
            title: chapter.title,
            position: chapter.position,
            market_count: totals.markets,
            total_volume: totals.volume.to_cents_floor(),
            status: if open_markets > 0 { "active" } else { "closed" },
        }
    }
}

/// Returns the thread with this id.
///
/// # Errors
///
/// `THREAD_NOT_FOUND` if the id is unknown or malformed.
pub async fn get_thread(app: &Shared, id: &str) -> Result<ThreadRow, Problem> {
    find_thread(&app.ctx, id).await?.ok_or_else(|| Problem::from(PublicCode::ThreadNotFound))
}
