//! Single markets, and the trending and featured markets.

use axum::extract::State;
use axum::response::Response;
use domain::Cents;
use domain::ids::MarketId;
use domain::market::round_for_display;
use http_kit::{NamedQuery, NoParameters, Parameters, PathId, Problem, PublicCode, Query, RawQuery, Shared};
use presentation::{find_market, next_end};
use serde::Serialize;
use store::StoreError;
use store::markets::{Market, Outcome};
use store::public::{ListedMarket, RankingWindow, TrendingMarket, list_featured};
use utoipa::ToSchema;

use super::answer::Meta;
use super::market_record::{MarketDetail, Prices};

/// One market.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketAnswer {
    market: MarketDetail,
}

/// `GET /api/markets/{id}`.
#[utoipa::path(
    get, path = "/api/markets/{id}", operation_id = "getPublicMarket", tag = "Markets", summary = "Read one market",
    description = "The market with its outcomes and, once it is settled, their payouts.",
    params(("id" = MarketId, Path, description = "The market's id.")),
    responses((status = 200, description = "The market.", body = MarketAnswer)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let (market, outcomes) = get_market(&app, &id).await?;
        let now = app.ctx.now();
        let until = next_end(std::iter::once(&market), now);
        Ok((MarketAnswer { market: MarketDetail::new(market, outcomes, now) }, until))
    };
    meta.kept(&app, &query.name, read).await
}

/// Returns the market with this id and its outcomes, if it exists on chain.
///
/// # Errors
///
/// `MARKET_NOT_FOUND` if the id is unknown or malformed.
pub async fn get_market(app: &Shared, id: &str) -> Result<(Market, Vec<Outcome>), Problem> {
    find_market(&app.ctx, id).await?.ok_or_else(|| Problem::from(PublicCode::MarketNotFound))
}

/// The trending markets.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrendingAnswer {
    markets: Vec<TrendingRecord>,
    timeframe: Timeframe,
}

/// The timeframe of the ranking.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TrendingTimeframe)]
struct Timeframe {
    /// `1h`, `24h` or `7d`.
    trending: &'static str,
}

/// A trending market.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TrendingMarket)]
#[serde(rename_all = "camelCase")]
struct TrendingRecord {
    id: MarketId,
    question: String,
    #[schema(minimum = 0, maximum = 1)]
    probability: f64,
    /// USDC traded so far.
    total_volume: Cents,
    trade_count: u64,
    /// The score, with four decimals.
    trending_score: f64,
    /// The rank. The first is 1.
    trending_rank: usize,
    recent_metrics: RecentMetrics,
}

/// The trading within the timeframe.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RecentMetrics {
    trade_count: u64,
    /// USDC traded.
    volume: Cents,
    unique_traders: u64,
}

const WINDOWS: &[(&str, RankingWindow)] =
    &[("24h", RankingWindow::OneDay), ("1h", RankingWindow::OneHour), ("7d", RankingWindow::SevenDays)];

/// The parameters `timeframe`, `category` and `limit`.
#[derive(Debug)]
pub struct TrendingQuery {
    window: RankingWindow,
    category: Option<String>,
    limit: u32,
}

impl Parameters for TrendingQuery {
    const NAMES: &'static [&'static str] = &["timeframe", "category", "limit"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let (window, category) = (asked.word("timeframe", WINDOWS), asked.text("category"));
        let limit = asked.limit();
        Some(Self { window: window?, category, limit: limit? })
    }
}

/// `GET /api/markets/trending`.
#[utoipa::path(
    get, path = "/api/markets/trending", operation_id = "listTrendingMarkets", tag = "Markets",
    summary = "List trending markets",
    description = "Open markets with a trade in the timeframe, highest score first, then by total volume \
        and id. The score is 3 ln(1 + unique traders) + 2 ln(1 + trades) + ln(1 + volume in USDC), each \
        over the timeframe, which starts at a multiple of 5 minutes.",
    params(
        ("timeframe" = Option<String>, Query, pattern = "^(1h|24h|7d)$", example = "24h", description = "1h, 24h (the default) or 7d."),
        ("category" = Option<String>, Query, min_length = 1, example = "weather", description = "Markets of this category."),
    ),
    responses((status = 200, description = "The markets.", body = TrendingAnswer)),
)]
pub async fn trending(
    State(app): State<Shared>,
    query: NamedQuery<TrendingQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: TrendingQuery { window, category, limit }, name } = query;
    let read = async || {
        let read: Result<Vec<TrendingMarket>, StoreError> = app
            .ctx
            .store
            .for_public()
            .read(category, move |tx, category| {
                Box::pin(store::public::list_trending(tx, window, category.as_deref(), limit))
            })
            .await;
        let word = WINDOWS.iter().find(|(_, meant)| *meant == window).map_or("24h", |(word, _)| *word);
        let markets = read?.into_iter().zip(1..).map(|(row, rank)| TrendingRecord::new(row, rank)).collect();
        Ok((TrendingAnswer { markets, timeframe: Timeframe { trending: word } }, None))
    };
    meta.kept(&app, &name, read).await
}

impl TrendingRecord {
    #[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "a display value")]
    fn new(row: TrendingMarket, rank: usize) -> Self {
        let TrendingMarket { listed, trade_count, volume, unique_traders, score_e4 } = row;
        let ListedMarket { market, outcomes, .. } = listed;
        let recent_metrics = RecentMetrics { trade_count, volume: volume.to_cents_floor(), unique_traders };
        Self {
            id: market.id,
            probability: Prices::of(&market, &outcomes).yes,
            total_volume: market.volume.to_cents_floor(),
            trade_count: market.trade_count,
            trending_score: round_for_display(score_e4 as f64 / 10_000.0, 4),
            trending_rank: rank,
            recent_metrics,
            question: market.question,
        }
    }
}

/// The featured markets.
#[derive(Debug, Serialize, ToSchema)]
pub struct FeaturedAnswer {
    markets: Vec<FeaturedRecord>,
}

/// A featured market.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeaturedMarket)]
#[serde(rename_all = "camelCase")]
struct FeaturedRecord {
    id: MarketId,
    question: String,
    #[schema(minimum = 0, maximum = 1)]
    probability: f64,
    /// USDC traded so far.
    total_volume: Cents,
    trade_count: u64,
    /// Always true.
    featured: bool,
}

/// `GET /api/markets/featured`.
#[utoipa::path(
    get, path = "/api/markets/featured", operation_id = "listFeaturedMarkets", tag = "Markets",
    summary = "List featured markets",
    description = "The markets that the operator features and that have not ended, in the operator's order. _meta.count is their number.",
    responses((status = 200, description = "The markets.", body = FeaturedAnswer)),
)]
pub async fn featured(
    State(app): State<Shared>,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read: Result<Vec<ListedMarket>, StoreError> =
        app.ctx.store.for_public().read(app.ctx.now(), |tx, now| Box::pin(list_featured(tx, *now))).await;
    let markets: Vec<_> = read?.into_iter().map(FeaturedRecord::new).collect();
    meta.count(markets.len()).answer(&FeaturedAnswer { markets })
}

impl FeaturedRecord {
    fn new(listed: ListedMarket) -> Self {
        let ListedMarket { market, outcomes, .. } = listed;
        Self {
            id: market.id,
            probability: Prices::of(&market, &outcomes).yes,
            total_volume: market.volume.to_cents_floor(),
            trade_count: market.trade_count,
            featured: true,
            question: market.question,
        }
    }
}
