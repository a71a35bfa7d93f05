//! Price history of a market.

use app::markets::{MarketHistory, PoolState, Span, outcome_of};
use axum::extract::State;
use domain::candle::{self, Bucket, Interval};
use domain::ids::MarketId;
use domain::{Timestamp, Usdc, Wad};
use http_kit::{
    Caller, MarketsRead, Meta, OutcomeIndex, Parameters, PathId, Problem, Query, RawQuery, Shared, Single,
};
use serde::Serialize;
use store::markets::{Market, Outcome};
use utoipa::ToSchema;

use super::instants::{INSTANT, instant};
use super::markets::get_market;
use crate::candles::{opening_price, price, prices, shown};
use crate::openapi::answers::answers;
use crate::openapi::formats::Instant;

answers! {
    HistoryAnswer = single("history", HistoryRecord);
}

/// The parameters `interval`, `from`, `to` and `outcomeIndex`. All are optional.
#[derive(Debug)]
pub struct HistoryQuery {
    span: Span,
    outcome_index: Option<i64>,
}

impl Parameters for HistoryQuery {
    const NAMES: &'static [&'static str] = &["interval", "from", "to", "outcomeIndex"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let interval = given.parsed("interval", "must be one of 1m, 5m, 15m, 1h, 4h and 1d");
        let from = given.with("from", INSTANT, instant);
        let to = given.with("to", INSTANT, instant);
        let outcome_index = given
            .parsed("outcomeIndex", "must be an integer, 0 for the first")
            .map(|OutcomeIndex(index)| index);
        Some(Self { span: Span { interval, from, to }, outcome_index })
    }
}

/// A market's history from the start of the first interval (inclusive) to the end of the last one
/// (exclusive). Prices are numbers for display. An interval without trades has no candle.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketHistory)]
#[serde(rename_all = "camelCase")]
pub struct HistoryRecord {
    market_id: MarketId,
    interval: Interval,
    from: Timestamp,
    to: Timestamp,
    outcomes: Vec<OutcomeRecord>,
    /// The state at `from`, then at the end of each interval with a trade.
    pool: Vec<PoolRecord>,
}

/// An outcome's prices over time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutcomeHistory)]
#[serde(rename_all = "camelCase")]
struct OutcomeRecord {
    outcome_index: u8,
    label: String,
    /// The price at `from`.
    opening_price: f64,
    candles: Vec<CandleRecord>,
}

/// Prices of the outcome after each trade of the market, and the volume and trades of the outcome
/// itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Candle)]
#[serde(rename_all = "camelCase")]
struct CandleRecord {
    start: Timestamp,
    open: f64,
    high: f64,
    low: f64,
    close: f64,
    /// USDC moved, fees included, atomic-6.
    volume_usdc: Usdc,
    tokens: Wad,
    trades: u64,
}

/// The market maker's state at one time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PoolState)]
struct PoolRecord {
    at: Timestamp,
    /// The block of the last trade. Null before the first trade.
    block: Option<u64>,
    /// The value of the cost function.
    cost: Wad,
    /// Tokens of each outcome that the market maker has sold.
    quantities: Vec<Wad>,
    probabilities: Vec<f64>,
}

/// `GET /v1/markets/{id}/history`: candles of every outcome, or of one, and the market maker's
/// state over time.
#[utoipa::path(
    get, path = "/v1/markets/{id}/history", operation_id = "getMarketHistory", tag = "Markets",
    summary = "Read a market's price history",
    description = "Candles of every outcome, or of one, and the market maker's state over time. The span \
        is widened to whole intervals. An interval without trades has no candle.",
    params(
        ("id" = MarketId, Path, description = "The market's id."),
        ("interval" = Option<Interval>, Query, example = "1h", description = "The length of a candle. Default: an interval that suits the span."),
        ("from" = Option<Instant>, Query, example = "2026-04-28T12:00:00Z", description = "The start of \
            the span, inclusive. Default: the earliest that the interval allows."),
        ("to" = Option<Instant>, Query, example = "2026-04-29T12:00:00Z", description = "The end of the span, exclusive. Default: now, or the end of trading."),
        ("outcomeIndex" = Option<i64>, Query, minimum = 0, description = "Only candles of the outcome with this index. The first index is 0."),
    ),
    responses((status = 200, description = "The history.", body = HistoryAnswer)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND", "OUTCOME_INDEX_INVALID"]))),
)]
pub async fn history(
    State(app): State<Shared>,
    _caller: Caller<MarketsRead>,
    PathId(id): PathId,
    Query(query): Query<HistoryQuery>,
    meta: Meta,
) -> Result<Single<HistoryRecord>, Problem> {
    let (market, outcomes) = get_market(&app, &id).await?;
    let only = query.outcome_index.map(|index| outcome_of(outcomes.len(), index)).transpose()?;
    let history = app::markets::history(&app.ctx, &market, &outcomes, query.span).await?;
    Ok(meta.single("history", HistoryRecord::new(&market, outcomes, only, &history)))
}

impl HistoryRecord {
    fn new(market: &Market, outcomes: Vec<Outcome>, only: Option<u8>, history: &MarketHistory) -> Self {
        let closing = history.buckets.iter().map(PoolState::after);
        // The first state is that at `from`, before any trade of the span.
        let states = std::iter::once(history.opening.clone()).chain(closing);
        Self {
            market_id: market.id,
            interval: history.interval,
            from: history.from,
            to: history.to,
            outcomes: shown(outcomes, only)
                .map(|outcome| OutcomeRecord::new(outcome, history, market.liquidity))
                .collect(),
            pool: states.map(|state| PoolRecord::new(state, market.liquidity)).collect(),
        }
    }
}

impl OutcomeRecord {
    fn new(outcome: Outcome, history: &MarketHistory, liquidity: Usdc) -> Self {
        let candle = |bucket: &Bucket| CandleRecord::new(bucket, outcome.index, liquidity);
        Self {
            outcome_index: outcome.index,
            opening_price: opening_price(history, outcome.index, liquidity),
            candles: history.buckets.iter().map(candle).collect(),
            label: outcome.label,
        }
    }
}

impl CandleRecord {
    fn new(bucket: &Bucket, outcome_index: u8, liquidity: Usdc) -> Self {
        let candle = bucket.candle(outcome_index);
        let [open, high, low, close] = prices(&candle, liquidity);
        Self {
            start: bucket.start,
            open,
            high,
            low,
            close,
            volume_usdc: candle.volume,
            tokens: candle.tokens,
            trades: candle.trades,
        }
    }
}

impl PoolRecord {
    fn new(state: PoolState, liquidity: Usdc) -> Self {
        let PoolState { at, block, cost, quantities } = state;
        let price = |quantity: &Wad| price(candle::distance(cost, *quantity), liquidity);
        let probabilities = quantities.iter().map(price).collect();
        Self { at, block, cost, quantities, probabilities }
    }
}
