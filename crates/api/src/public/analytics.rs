//! Routes for people with a session of the web application.

use app::for_you::list_for_you;
use app::portfolio::{PortfolioPoint, Timeframe, read_over_time};
use app::sessions::Person;
use axum::extract::State;
use axum::response::Response;
use domain::{Cents, Timestamp};
use http_kit::{NoParameters, Parameters, Problem, PublicCode, Query, RawQuery, Shared, Visitor};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Meta;
use super::leaderboard::cents_floor;
use super::market_record::MarketRecord;

/// The markets for a person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForYouAnswer {
    markets: Vec<MarketRecord>,
}

/// `GET /api/markets/for-you`.
#[utoipa::path(
    get, path = "/api/markets/for-you", operation_id = "listMarketsForYou", tag = "Session",
    summary = "List markets for you",
    description = "Open markets in the threads and categories that the user has traded, at most 50: first \
        those of threads, then those of categories, most traded first, then by total volume. Empty before \
        the first trade. _meta.count is their number. Requires a session of the web application.",
    responses((status = 200, description = "The markets.", body = ForYouAnswer)),
    extensions(("x-error-codes" = json!(["UNAUTHORIZED"]))),
)]
pub async fn for_you(
    State(app): State<Shared>,
    visitor: Visitor,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let person = member(visitor)?;
    let listed = list_for_you(&app.ctx, person.user_id()).await?;
    let now = app.ctx.now();
    let record = |listed: store::public::ListedMarket| MarketRecord::new(listed.market, listed.outcomes, now);
    let markets: Vec<_> = listed.into_iter().map(record).collect();
    meta.count(markets.len()).answer(&ForYouAnswer { markets })
}

fn member(Visitor(person): Visitor) -> Result<Person, Problem> {
    person.ok_or_else(|| Problem::from(PublicCode::Unauthorized))
}

const TIMEFRAMES: &[(&str, Timeframe)] = &[
    ("30d", Timeframe::ThirtyDays),
    ("24h", Timeframe::OneDay),
    ("7d", Timeframe::SevenDays),
    ("all", Timeframe::All),
];

/// The parameter `timeframe`.
#[derive(Debug)]
pub struct AnalyticsQuery(Timeframe);

impl Parameters for AnalyticsQuery {
    const NAMES: &'static [&'static str] = &["timeframe"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        asked.word("timeframe", TIMEFRAMES).map(Self)
    }
}

/// An account's value and profit over time.
#[derive(Debug, Serialize, ToSchema)]
pub struct AnalyticsAnswer {
    /// `24h`, `7d`, `30d` or `all`.
    timeframe: &'static str,
    /// Oldest first. The last point is the present.
    points: Vec<PointRecord>,
}

/// The account at one time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PortfolioPoint)]
#[serde(rename_all = "camelCase")]
struct PointRecord {
    timestamp: Timestamp,
    /// Cash and positions.
    value: Cents,
    cash: Cents,
    /// The positions at the prices of that time.
    positions: Cents,
    /// Deposits minus withdrawals until then, in cents.
    deposited: i64,
    /// The value minus what was deposited, in cents. A loss is negative.
    profit: i64,
}

/// `GET /api/portfolio/analytics`.
#[utoipa::path(
    get, path = "/api/portfolio/analytics", operation_id = "getPortfolioAnalytics", tag = "Session",
    summary = "Read your portfolio over time",
    description = "The user's value and profit over time, computed from the chain's transfers, trades and \
        prices. Points are 15 minutes to a week apart, depending on the timeframe. Requires a session of the \
        web application. DEPENDENCY_UNAVAILABLE means that the account's transfers or a market's prices are \
        still being read: try again after the seconds of Retry-After.",
    params(
        ("timeframe" = Option<String>, Query, pattern = "^(24h|7d|30d|all)$", example = "7d", description = "24h, 7d, 30d (the default) or all: since the user signed up."),
    ),
    responses((status = 200, description = "The points.", body = AnalyticsAnswer)),
    extensions(("x-error-codes" = json!(["UNAUTHORIZED"]))),
)]
pub async fn analytics(
    State(app): State<Shared>,
    visitor: Visitor,
    Query(AnalyticsQuery(timeframe)): Query<AnalyticsQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let person = member(visitor)?;
    let read = read_over_time(&app.ctx, &person, timeframe).await?;
    let word = TIMEFRAMES.iter().find(|(_, meant)| *meant == timeframe).map_or("30d", |(word, _)| *word);
    let points = read.points.iter().map(PointRecord::new).collect();
    meta.answer(&AnalyticsAnswer { timeframe: word, points })
}

impl PointRecord {
    fn new(point: &PortfolioPoint) -> Self {
        let PortfolioPoint { at, cash, positions, deposited } = *point;
        Self {
            timestamp: at,
            value: point.value().to_cents_floor(),
            cash: cash.to_cents_floor(),
            positions: positions.to_cents_floor(),
            deposited: cents_floor(deposited),
            profit: cents_floor(point.profit()),
        }
    }
}
