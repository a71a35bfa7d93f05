//! Lists of markets: all markets, those of a thread and those of an organization.

use axum::extract::State;
use axum::response::Response;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use domain::search::{MAX_ASKED, words};
use http_kit::{NamedQuery, Parameters, PathId, Problem, RawQuery, Shared};
use presentation::next_end;
use serde::Serialize;
use store::StoreError;
use store::listed::ListStatus;
use store::public::{MarketFilter, MarketSort, Order, PageRange};
use utoipa::ToSchema;

use super::answer::{Meta, Pagination};
use super::market_record::MarketRecord;
use super::organizations::get_organization;
use super::threads::get_thread;

/// A page of markets.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketsAnswer {
    markets: Vec<MarketRecord>,
    pagination: Pagination,
}

/// The filter, sort order and page of a list of markets.
#[derive(Debug)]
pub struct MarketsSelection {
    filter: MarketFilter,
    sort: MarketSort,
    order: Order,
    window: PageRange,
}

const ACTIVE: &[ListStatus] = &[ListStatus::Open];
const RESOLVED: &[ListStatus] = &[ListStatus::Resolved];
const PAUSED: &[ListStatus] = &[ListStatus::Frozen];
const CANCELLED: &[ListStatus] = &[ListStatus::Cancelled, ListStatus::Refunded];

/// The values of `status`. The first one is the default.
const STATUSES: &[(&str, &[ListStatus])] = &[
    ("active", ACTIVE),
    ("resolved", RESOLVED),
    ("cancelled", CANCELLED),
    ("paused", PAUSED),
    ("refunded", &[ListStatus::Refunded]),
    ("all", &[ListStatus::Open, ListStatus::Resolved]),
];
/// The values of `status` for markets of a thread or an organization. There is no default.
const STATUSES_WITHIN: &[(&str, &[ListStatus])] =
    &[("active", ACTIVE), ("resolved", RESOLVED), ("cancelled", CANCELLED), ("paused", PAUSED)];

const SORTS: &[(&str, MarketSort)] = &[
    ("created_at", MarketSort::CreatedAt),
    ("total_volume", MarketSort::TotalVolume),
    ("current_probability", MarketSort::CurrentProbability),
    ("title", MarketSort::Title),
    ("end_time", MarketSort::EndTime),
];
/// Sort keys within a thread or an organization, which exclude the end time.
const SORTS_WITHIN: &[(&str, MarketSort)] = SORTS.split_at(4).0;

/// The values of `sortOrder`.
pub const ORDERS: &[(&str, Order)] = &[("desc", Order::Desc), ("asc", Order::Asc)];

/// Maximum length of a search text, in bytes.
const MAX_TEXT: usize = 200;

/// Reads the search text `q`, if it was sent.
pub fn text(asked: &mut RawQuery<'_>) -> Option<String> {
    let detail = "must have at most 200 bytes and six different words";
    asked.with("q", detail, |text| {
        (text.len() <= MAX_TEXT && words(text).len() <= MAX_ASKED).then(|| text.to_owned())
    })
}

/// The parameters of `GET /api/markets`.
#[derive(Debug)]
pub struct MarketsQuery(MarketsSelection);

impl Parameters for MarketsQuery {
    const NAMES: &'static [&'static str] = &[
        "status",
        "active",
        "resolvedAfter",
        "resolvedBefore",
        "category",
        "threadId",
        "thread_id",
        "organizationId",
        "partnerId",
        "chapterId",
        "q",
        "limit",
        "offset",
        "sortBy",
        "sortOrder",
    ];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        const ID: &str = "must be a UUID";
        let status = asked.word("status", STATUSES);
        let active = asked.flag("active").map(|active| if active { ACTIVE } else { RESOLVED });
        if asked.text("threadId").is_some() && asked.text("thread_id").is_some() {
            asked.wrong("thread_id", "must not be sent with threadId: both have the same meaning");
        }
        let filter = MarketFilter {
            resolved_after: asked.seconds("resolvedAfter"),
            resolved_before: asked.seconds("resolvedBefore"),
            category: asked.text("category"),
            thread_id: asked.parsed("threadId", ID).or_else(|| asked.parsed("thread_id", ID)),
            organization_id: asked.parsed::<OrganizationId>("organizationId", ID),
            partner_id: asked.parsed::<PartnerId>("partnerId", ID),
            chapter_id: asked.text("chapterId"),
            text: text(asked),
            ..MarketFilter::default()
        };
        let (sort, order) = (asked.word("sortBy", SORTS), asked.word("sortOrder", ORDERS));
        let window = asked.extent();
        // If both are sent, `active` overrides `status`.
        let filter = MarketFilter { statuses: active.or(status)?.to_vec(), ..filter };
        Some(Self(MarketsSelection { filter, sort: sort?, order: order?, window: window? }))
    }
}

/// The parameters of a list of markets within a thread or an organization.
#[derive(Debug)]
pub struct MarketsWithinQuery(MarketsSelection);

impl Parameters for MarketsWithinQuery {
    const NAMES: &'static [&'static str] = &["status", "limit", "offset", "sortBy", "sortOrder"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let statuses = asked.word_if_sent("status", STATUSES_WITHIN).unwrap_or_default().to_vec();
        let filter = MarketFilter { statuses, ..MarketFilter::default() };
        let (sort, order) = (asked.word("sortBy", SORTS_WITHIN), asked.word("sortOrder", ORDERS));
        Some(Self(MarketsSelection { filter, sort: sort?, order: order?, window: asked.extent()? }))
    }
}

/// `GET /api/markets`.
#[utoipa::path(
    get, path = "/api/markets", operation_id = "listPublicMarkets", tag = "Markets", summary = "List markets",
    description = "Markets on chain. Default: open markets, newest first. Equal markets are ordered by id. \
        With q the best match comes first and sortBy is ignored.",
    params(
        ("status" = Option<String>, Query, pattern = "^(active|resolved|cancelled|paused|refunded|all)$", example = "active",
            description = "active (the default): OPEN. paused: FROZEN. resolved: RESOLVED. cancelled: CANCELLED. refunded: \
                CANCELLED with every refund paid. all: active and resolved."),
        ("active" = Option<bool>, Query, description = "Overrides status: true means active, false means resolved."),
        ("resolvedAfter" = Option<u64>, Query, maximum = 253370764799u64, example = 1777377600,
            description = "Resolved markets only if they were resolved at this time or later, in seconds since the Unix epoch. Does not affect other markets."),
        ("resolvedBefore" = Option<u64>, Query, maximum = 253370764799u64,
            description = "Resolved markets only if they were resolved at this time or earlier, in seconds since the Unix epoch. Does not affect other markets."),
        ("category" = Option<String>, Query, min_length = 1, example = "weather", description = "Markets of this category."),
        ("threadId" = Option<ThreadId>, Query, description = "Markets of this thread. Send either threadId or thread_id."),
        ("thread_id" = Option<ThreadId>, Query, description = "Alias of threadId."),
        ("organizationId" = Option<OrganizationId>, Query, description = "Markets of this organization."),
        ("partnerId" = Option<PartnerId>, Query, description = "Markets of this partner."),
        ("chapterId" = Option<String>, Query, min_length = 1, description = "Markets of this chapter."),
        ("q" = Option<String>, Query, min_length = 1, max_length = 200, example = "rain",
            description = "Markets whose question, tags or category contain every word of this text, or words that begin with it."),
        ("sortBy" = Option<String>, Query, pattern = "^(created_at|total_volume|current_probability|title|end_time)$",
            example = "total_volume", description = "created_at (the default), total_volume, current_probability, title, end_time."),
        ("sortOrder" = Option<String>, Query, pattern = "^(asc|desc)$", example = "desc", description = "desc (the default) or asc."),
    ),
    responses((status = 200, description = "A page of markets.", body = MarketsAnswer)),
)]
pub async fn markets(
    State(app): State<Shared>,
    query: NamedQuery<MarketsQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: MarketsQuery(chosen), name } = query;
    meta.kept(&app, &name, async || listed(&app, chosen).await).await
}

/// `GET /api/threads/{id}/markets`.
#[utoipa::path(
    get, path = "/api/threads/{id}/markets", operation_id = "listThreadMarkets", tag = "Threads",
    summary = "List a thread's markets",
    description = "The markets of the thread, of every status unless status is sent. Equal markets are ordered by id.",
    params(
        ("id" = ThreadId, Path, description = "The thread's id."),
        ("status" = Option<String>, Query, pattern = "^(active|resolved|cancelled|paused)$", example = "active",
            description = "active: OPEN. paused: FROZEN. resolved: RESOLVED. cancelled: CANCELLED."),
        ("sortBy" = Option<String>, Query, pattern = "^(created_at|total_volume|current_probability|title)$",
            description = "created_at (the default), total_volume, current_probability, title."),
        ("sortOrder" = Option<String>, Query, pattern = "^(asc|desc)$", description = "desc (the default) or asc."),
    ),
    responses((status = 200, description = "A page of markets.", body = MarketsAnswer)),
    extensions(("x-error-codes" = json!(["THREAD_NOT_FOUND"]))),
)]
pub async fn of_thread(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<MarketsWithinQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: MarketsWithinQuery(mut chosen), name } = query;
    let read = async || {
        chosen.filter.thread_id = Some(get_thread(&app, &id).await?.thread.id);
        listed(&app, chosen).await
    };
    meta.kept(&app, &name, read).await
}

/// `GET /api/organizations/{id}/markets`.
#[utoipa::path(
    get, path = "/api/organizations/{id}/markets", operation_id = "listOrganizationMarkets", tag = "Organizations",
    summary = "List an organization's markets",
    description = "The markets of the organization, of every status unless status is sent. Equal markets are ordered by id.",
    params(
        ("id" = OrganizationId, Path, description = "The organization's id."),
        ("status" = Option<String>, Query, pattern = "^(active|resolved|cancelled|paused)$", example = "active",
            description = "active: OPEN. paused: FROZEN. resolved: RESOLVED. cancelled: CANCELLED."),
        ("sortBy" = Option<String>, Query, pattern = "^(created_at|total_volume|current_probability|title)$",
            description = "created_at (the default), total_volume, current_probability, title."),
        ("sortOrder" = Option<String>, Query, pattern = "^(asc|desc)$", description = "desc (the default) or asc."),
    ),
    responses((status = 200, description = "A page of markets.", body = MarketsAnswer)),
    extensions(("x-error-codes" = json!(["ORGANIZATION_NOT_FOUND"]))),
)]
pub async fn of_organization(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<MarketsWithinQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: MarketsWithinQuery(mut chosen), name } = query;
    let read = async || {
        chosen.filter.organization_id = Some(get_organization(&app, &id).await?.organization.id);
        listed(&app, chosen).await
    };
    meta.kept(&app, &name, read).await
}

async fn listed(
    app: &Shared,
    chosen: MarketsSelection,
) -> Result<(MarketsAnswer, Option<domain::Timestamp>), Problem> {
    let window = chosen.window;
    let read: Result<_, StoreError> = app
        .ctx
        .store
        .for_public()
        .read(chosen, |tx, MarketsSelection { filter, sort, order, window }| {
            Box::pin(store::public::list_markets(tx, filter, *sort, *order, *window))
        })
        .await;
    let (listed, now) = (read?, app.ctx.now());
    // The cached response expires when one of its markets ends.
    let until = next_end(listed.items.iter().map(|listed| &listed.market), now);
    let pagination = Pagination::new(window, listed.items.len(), listed.total);
    let record = |listed: store::public::ListedMarket| MarketRecord::new(listed.market, listed.outcomes, now);
    Ok((MarketsAnswer { markets: listed.items.into_iter().map(record).collect(), pagination }, until))
}

/// Returns a thread's newest 100 markets, for the thread's own response.
pub async fn within(app: &Shared, thread_id: ThreadId) -> Result<Vec<MarketRecord>, Problem> {
    let filter = MarketFilter { thread_id: Some(thread_id), ..MarketFilter::default() };
    let window = PageRange { offset: 0, limit: 100 };
    let (answer, _) =
        listed(app, MarketsSelection { filter, sort: MarketSort::CreatedAt, order: Order::Desc, window })
            .await?;
    Ok(answer.markets)
}
