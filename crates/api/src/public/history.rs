//! Price history of a market, for charts.

use app::markets::{MarketHistory, Range, Span, outcome_of};
use axum::extract::State;
use axum::response::Response;
use domain::candle::{Bucket, Interval};
use domain::ids::MarketId;
use domain::{Cents, Usdc};
use http_kit::{NamedQuery, Parameters, PathId, Problem, RawQuery, Shared, number};
use serde::Serialize;
use store::markets::{Market, Outcome};
use utoipa::ToSchema;

use super::answer::Meta;
use super::markets::get_market;
use crate::candles::{opening_price, prices, shown};

/// The parameters `interval`, `range` or `from` and `to`, and `outcomeIndex`. All are optional.
#[derive(Debug)]
pub struct HistoryQuery {
    span: Span,
    range: Option<Range>,
    outcome_index: Option<i64>,
}

impl Parameters for HistoryQuery {
    const NAMES: &'static [&'static str] = &["interval", "range", "from", "to", "outcomeIndex"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let interval = asked.parsed("interval", "must be one of 1m, 5m, 15m, 1h, 4h, 1d");
        let (from, to) = (asked.seconds("from"), asked.seconds("to"));
        let outcome_index = asked.with("outcomeIndex", "must be an integer, 0 for the first", number);
        let range = asked.word_if_sent("range", &Range::WORDS);
        if asked.text("range").is_some() && (from.is_some() || to.is_some()) {
            asked.wrong("range", "must be sent without from and to");
        }
        Some(Self { span: Span { interval, from, to }, range, outcome_index })
    }
}

/// A market's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HistoryAnswer)]
pub struct HistoryAnswer {
    history: HistoryRecord,
}

/// Candles from the start of the first interval (inclusive) to the end of the last one (exclusive).
/// An interval without trades has no candle.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketHistory)]
#[serde(rename_all = "camelCase")]
struct HistoryRecord {
    market_id: MarketId,
    interval: Interval,
    /// Seconds since the Unix epoch.
    from: u64,
    /// Seconds since the Unix epoch.
    to: u64,
    outcomes: Vec<OutcomeRecord>,
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
    /// The start of the interval, in seconds since the Unix epoch.
    time: u64,
    open: f64,
    high: f64,
    low: f64,
    close: f64,
    /// USDC traded on the outcome.
    volume: Cents,
    trade_count: u64,
}

/// `GET /api/markets/{id}/history`.
#[utoipa::path(
    get, path = "/api/markets/{id}/history", operation_id = "getPublicMarketHistory", tag = "Markets",
    summary = "Read a market's price history",
    description = "Candles of every outcome, or of one. The span is widened to whole intervals. An \
        interval without trades has no candle. Default: the last 24 hours of trading, in an interval that \
        suits the span.",
    params(
        ("id" = MarketId, Path, description = "The market's id."),
        ("interval" = Option<Interval>, Query, example = "1h", description = "The length of a candle."),
        ("range" = Option<String>, Query, pattern = "^(1h|24h|7d|30d|all)$", example = "7d", description = "1h, 24h, 7d, 30d or all, until now or the end of trading. Use it instead of from and to."),
        ("from" = Option<u64>, Query, maximum = 253370764799u64, example = 1777377600, description = "The start of the span, inclusive, in seconds since the Unix epoch."),
        ("to" = Option<u64>, Query, maximum = 253370764799u64, example = 1777464000, description = "The end of the span, exclusive, in seconds since the Unix epoch."),
        ("outcomeIndex" = Option<i64>, Query, minimum = 0, description = "Only candles of the outcome with this index. The first index is 0."),
    ),
    responses((status = 200, description = "The history.", body = HistoryAnswer)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND"]))),
)]
pub async fn history(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<HistoryQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let HistoryQuery { span, range, outcome_index } = query.parameters;
    let read = async || {
        let (market, outcomes) = get_market(&app, &id).await?;
        let only = outcome_index.map(|index| outcome_of(outcomes.len(), index)).transpose()?;
        // Ranges end at the end of trading, so they depend on the market.
        let of_range = |range: Range| range.span(&market, outcomes.len(), span.interval, app.ctx.now());
        let span = range.map_or(span, of_range);
        let history = app::markets::history(&app.ctx.for_public(), &market, &outcomes, span).await?;
        Ok((HistoryAnswer { history: HistoryRecord::new(&market, outcomes, only, &history) }, None))
    };
    meta.kept(&app, &query.name, read).await
}

impl HistoryRecord {
    fn new(market: &Market, outcomes: Vec<Outcome>, only: Option<u8>, history: &MarketHistory) -> Self {
        let record = |outcome| OutcomeRecord::new(outcome, history, market.liquidity);
        Self {
            market_id: market.id,
            interval: history.interval,
            from: history.from.s(),
            to: history.to.s(),
            outcomes: shown(outcomes, only).map(record).collect(),
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
            time: bucket.start.s(),
            open,
            high,
            low,
            close,
            volume: candle.volume.to_cents_floor(),
            trade_count: candle.trades,
        }
    }
}
