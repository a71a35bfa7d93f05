//! Price history: a market's candles and the market maker's state at their ends.

use domain::candle::{Bucket, Interval, roll_up};
use domain::market::MarketStatus;
use domain::time::DAY_MS;
use domain::{ErrorCode, Timestamp, Wad};
use store::markets::{Market, Outcome};

use crate::{AppError, Ctx};

/// The maximum number of candles per outcome in one response.
pub const MOST_INTERVALS: i64 = 1_000;
/// The maximum number of candles of all outcomes in one response. A market with more than ten
/// outcomes gets fewer intervals.
pub const MOST_CANDLES: i64 = 10_000;
/// The maximum number of intervals if the request names no interval.
const WANTED_INTERVALS: i64 = 300;
/// The retry time, in seconds, while candles are recomputed.
const RETRY_AFTER_S: u32 = 5;

/// A requested span. Missing values are chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// The length of a candle. By default the shortest that gives at most 300.
    pub interval: Option<Interval>,
    /// The start, inclusive. By default 24 hours before the end, or less if one response cannot
    /// hold them at the interval.
    pub from: Option<Timestamp>,
    /// The end, exclusive. By default now, or the end of the market's trading.
    pub to: Option<Timestamp>,
}

/// A chart range that ends now, or at the end of the market's trading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    OneHour,
    OneDay,
    SevenDays,
    ThirtyDays,
    /// Since the market's creation, or as many days as one response can hold.
    All,
}

impl Range {
    /// Every range and its identifier.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("1h", Self::OneHour),
        ("24h", Self::OneDay),
        ("7d", Self::SevenDays),
        ("30d", Self::ThirtyDays),
        ("all", Self::All),
    ];

    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(known, _)| *known == word).map(|(_, range)| range)
    }

    /// Returns the span of this range at `now`. If `interval` is `None`, it is chosen later.
    pub fn span(self, market: &Market, outcomes: usize, interval: Option<Interval>, now: Timestamp) -> Span {
        let to = trading_end(market, now).plus_ms(1);
        let ms = match self {
            Self::OneHour => DAY_MS / 24,
            Self::OneDay => DAY_MS,
            Self::SevenDays => 7 * DAY_MS,
            Self::ThirtyDays => 30 * DAY_MS,
            // One day less than fits, because the first and the last day are partial.
            Self::All => {
                let most_days = (most_intervals(outcomes) - 1).max(1);
                to.since_ms(market.created_at).clamp(DAY_MS / 24, most_days * DAY_MS)
            }
        };
        Span { interval, from: Some(to.plus_ms(-ms)), to: Some(to) }
    }
}

/// The market maker's state at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolState {
    pub at: Timestamp,
    /// The block of the last trade before `at`. `None` if there was none.
    pub block: Option<u64>,
    /// The cost `C`.
    pub cost: Wad,
    /// The quantity `q` of each outcome.
    pub quantities: Vec<Wad>,
}

/// A market's history in whole intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketHistory {
    /// The length of a candle.
    pub interval: Interval,
    /// The start of the first interval.
    pub from: Timestamp,
    /// The end of the last interval.
    pub to: Timestamp,
    /// The state at `from`.
    pub opening: PoolState,
    /// The intervals that have trades.
    pub buckets: Vec<Bucket>,
}

/// Returns the history of a market in the intervals that `span` touches. `outcomes` must be all of
/// the market's outcomes.
pub async fn history(
    ctx: &Ctx,
    market: &Market,
    outcomes: &[Outcome],
    span: Span,
) -> Result<MarketHistory, AppError> {
    let (interval, from, to) = bounds(market, outcomes.len(), span, ctx.now())?;
    let stored = interval.stored();
    let (is_behind, mut buckets) = ctx
        .store
        .read((market.id, stored, from, to), |tx, (id, stored, from, to)| {
            Box::pin(async move {
                let buckets = store::candles::list(tx, *id, *stored, *from, *to).await?;
                Ok((store::candles::is_behind(tx, *id).await?, buckets))
            })
        })
        .await?;
    if is_behind {
        return Err(AppError::new(ErrorCode::DependencyUnavailable)
            .detail("The market's history is still being computed. Try again in a few seconds.")
            .retry_after_s(RETRY_AFTER_S));
    }
    // The list may begin with the last bucket before the span, which provides the opening state.
    let before = match buckets.first() {
        Some(first) if first.start < from => Some(buckets.remove(0)),
        _ => None,
    };
    let opening = match before {
        Some(before) => PoolState { at: from, ..PoolState::after(&before) },
        None => PoolState {
            at: from,
            block: None,
            cost: market.opening_cost,
            quantities: outcomes.iter().map(|outcome| outcome.opening).collect(),
        },
    };
    Ok(MarketHistory { interval, from, to, opening, buckets: roll_up(buckets, interval) })
}

impl PoolState {
    /// Returns the state after a bucket's last trade.
    pub fn after(bucket: &Bucket) -> Self {
        Self {
            at: bucket.at,
            block: Some(bucket.block),
            cost: bucket.cost.close,
            quantities: bucket.quantities.clone(),
        }
    }
}

/// Returns the maximum number of intervals in one response.
fn most_intervals(outcomes: usize) -> i64 {
    let outcomes = i64::try_from(outcomes).unwrap_or(i64::MAX).max(1);
    (MOST_CANDLES / outcomes).clamp(1, MOST_INTERVALS)
}

/// Returns the interval, and the span extended to whole intervals.
fn bounds(
    market: &Market,
    outcomes: usize,
    span: Span,
    now: Timestamp,
) -> Result<(Interval, Timestamp, Timestamp), AppError> {
    // The end is exclusive, so add 1 ms to include a trade at this instant.
    let to = span.to.unwrap_or_else(|| trading_end(market, now).plus_ms(1));
    let most = most_intervals(outcomes);
    let from = span.from.unwrap_or_else(|| {
        let day = to.plus_ms(-DAY_MS);
        span.interval.map_or(day, |interval| day.max(interval.ceil(to).plus_ms(-most * interval.ms())))
    });
    if from >= to {
        return Err(AppError::field("/from", "must be before `to`"));
    }
    let finest = |most| Interval::ALL.into_iter().find(|interval| interval.count(from, to) <= most);
    let fits = finest(most);
    let wanted = span.interval.or_else(|| finest(most.min(WANTED_INTERVALS)).or(fits));
    match wanted {
        Some(interval) if interval.count(from, to) <= most => {
            Ok((interval, interval.floor(from), interval.ceil(to)))
        }
        _ => Err(too_many(wanted, fits, most, from, to)),
    }
}

fn too_many(
    wanted: Option<Interval>,
    fits: Option<Interval>,
    most: i64,
    from: Timestamp,
    to: Timestamp,
) -> AppError {
    let wanted = wanted.unwrap_or(Interval::OneDay);
    let count = wanted.count(from, to);
    let given = format!("this span has {count} candles of {}, at most {most} are returned", wanted.as_str());
    match fits {
        Some(fits) => AppError::field("/interval", &format!("must be at least {}: {given}", fits.as_str())),
        None => AppError::field("/from", &format!("must be later: {given}")),
    }
}

/// Returns the end of trading, or `now` if the market is still trading.
fn trading_end(market: &Market, now: Timestamp) -> Timestamp {
    let settled = matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled);
    let stopped = settled.then(|| market.frozen_at.or(market.resolved_at)).flatten();
    now.min(market.end_time).min(stopped.unwrap_or(now))
}
