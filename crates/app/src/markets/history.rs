//! What trading did to a market over time: its candles, and the market maker's state at their ends.

use domain::candle::{Bucket, Interval, roll_up};
use domain::market::MarketStatus;
use domain::time::DAY_MS;
use domain::{ErrorCode, Timestamp, Wad};
use store::StoreError;
use store::markets::{Market, Outcome};

use crate::{AppError, Ctx};

/// The most candles of each outcome in one answer.
pub const MOST_INTERVALS: i64 = 1_000;
/// The most candles of all outcomes in one answer: a market of more than ten outcomes gets fewer intervals.
pub const MOST_CANDLES: i64 = 10_000;
/// How many intervals the answer has at most where none was asked for.
const WANTED_INTERVALS: i64 = 300;
/// Between requests while the candles are made.
const RETRY_AFTER_S: u32 = 5;

/// What is asked for; what is left out is chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// How long a candle is; the shortest that gives at most 300.
    pub interval: Option<Interval>,
    /// The beginning, inclusive; 24 hours before the end, or as much of them as one answer holds at the interval.
    pub from: Option<Timestamp>,
    /// The end, exclusive; now, or the end of the market's trading.
    pub to: Option<Timestamp>,
}

/// A time up to now, or up to the end of the market's trading, for charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// An hour.
    OneHour,
    /// 24 hours.
    OneDay,
    /// Seven days.
    SevenDays,
    /// Thirty days.
    ThirtyDays,
    /// From the market's creation on, or as much of it as one answer holds in days.
    All,
}

impl Range {
    /// Every range and its word.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("1h", Self::OneHour),
        ("24h", Self::OneDay),
        ("7d", Self::SevenDays),
        ("30d", Self::ThirtyDays),
        ("all", Self::All),
    ];

    /// The range of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(known, _)| *known == word).map(|(_, range)| range)
    }

    /// The span of the history of a market with so many outcomes at `now`; the interval is chosen where none is given.
    pub fn span(self, market: &Market, outcomes: usize, interval: Option<Interval>, now: Timestamp) -> Span {
        let to = trading_end(market, now).plus_ms(1);
        let ms = match self {
            Self::OneHour => DAY_MS / 24,
            Self::OneDay => DAY_MS,
            Self::SevenDays => 7 * DAY_MS,
            Self::ThirtyDays => 30 * DAY_MS,
            // A day less than fits: the first and the last one are parts of days.
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
    /// When.
    pub at: Timestamp,
    /// The block of the last trade before; `None` where there was none.
    pub block: Option<u64>,
    /// The cost `C`.
    pub cost: Wad,
    /// Each outcome's quantity `q`.
    pub quantities: Vec<Wad>,
}

/// A market's history over whole intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// How long a candle is.
    pub interval: Interval,
    /// The start of the first interval.
    pub from: Timestamp,
    /// The end of the last one.
    pub to: Timestamp,
    /// The state at `from`.
    pub opening: PoolState,
    /// The intervals in which the market was traded.
    pub buckets: Vec<Bucket>,
}

/// The history of a market over the intervals that `span` touches. `outcomes` are all of the market's.
pub async fn history(
    ctx: &Ctx,
    market: &Market,
    outcomes: &[Outcome],
    span: Span,
) -> Result<History, AppError> {
    let (interval, from, to) = bounds(market, outcomes.len(), span, ctx.now())?;
    let stored = interval.stored();
    let read: Result<_, StoreError> = ctx
        .store
        .read((market.id, stored, from, to), |tx, (id, stored, from, to)| {
            Box::pin(async move {
                let buckets = store::candles::list(tx, *id, *stored, *from, *to).await?;
                Ok((store::candles::is_behind(tx, *id).await?, buckets))
            })
        })
        .await;
    let (is_behind, mut buckets) = read?;
    if is_behind {
        return Err(AppError::new(ErrorCode::DependencyUnavailable)
            .detail("The market's history is being put together. Try again in a moment.")
            .retry_after_s(RETRY_AFTER_S));
    }
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
    Ok(History { interval, from, to, opening, buckets: roll_up(buckets, interval) })
}

impl PoolState {
    /// The state that a bucket's last trade left.
    pub fn after(bucket: &Bucket) -> Self {
        Self {
            at: bucket.at,
            block: Some(bucket.block),
            cost: bucket.cost.close,
            quantities: bucket.quantities.clone(),
        }
    }
}

/// The most intervals in one answer of a market with so many outcomes.
fn most_intervals(outcomes: usize) -> i64 {
    let outcomes = i64::try_from(outcomes).unwrap_or(i64::MAX).max(1);
    (MOST_CANDLES / outcomes).clamp(1, MOST_INTERVALS)
}

/// The interval, and the whole intervals that the span touches.
fn bounds(
    market: &Market,
    outcomes: usize,
    span: Span,
    now: Timestamp,
) -> Result<(Interval, Timestamp, Timestamp), AppError> {
    // The end is exclusive, and a trade of this very instant belongs to the answer.
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

/// When trading ended, or now where it goes on.
fn trading_end(market: &Market, now: Timestamp) -> Timestamp {
    let settled = matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled);
    let stopped = settled.then(|| market.frozen_at.or(market.resolved_at)).flatten();
    now.min(market.end_time).min(stopped.unwrap_or(now))
}
