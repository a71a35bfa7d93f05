//! Candles: a market's prices and volumes in time intervals.
//!
//! An outcome's price is `exp((q - C) / b)`. Within one market, the distance `C - q` therefore
//! determines the price, and it is an exact integer: a smaller distance means a higher price.
//!
//! A trade changes the `q` of its own outcome and the `C` of the market. The distances of all other
//! outcomes change only with `C`. A [`Bucket`] therefore stores the course of `C`, the final
//! quantities, and separate courses only for the outcomes that were traded in it. A trade in a
//! market of 200 outcomes costs no more than in a market of two.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::Serialize;

use crate::time::{DAY_MS, MINUTE_MS};
use crate::{Timestamp, Usdc, Wad};

/// The length of a candle. Candles are aligned to UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Interval {
    #[serde(rename = "1m")]
    OneMinute,
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "15m")]
    FifteenMinutes,
    #[serde(rename = "1h")]
    OneHour,
    /// Starts at 00:00, 04:00 and so on.
    #[serde(rename = "4h")]
    FourHours,
    #[serde(rename = "1d")]
    OneDay,
}

impl Interval {
    /// In ascending order of length.
    pub const ALL: [Self; 6] = [
        Self::OneMinute,
        Self::FiveMinutes,
        Self::FifteenMinutes,
        Self::OneHour,
        Self::FourHours,
        Self::OneDay,
    ];

    /// The intervals whose buckets are stored. Each other interval combines at most four buckets of
    /// one of these.
    pub const STORED: [Self; 4] = [Self::OneMinute, Self::FiveMinutes, Self::OneHour, Self::OneDay];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OneMinute => "1m",
            Self::FiveMinutes => "5m",
            Self::FifteenMinutes => "15m",
            Self::OneHour => "1h",
            Self::FourHours => "4h",
            Self::OneDay => "1d",
        }
    }

    pub const fn ms(self) -> i64 {
        match self {
            Self::OneMinute => MINUTE_MS,
            Self::FiveMinutes => 5 * MINUTE_MS,
            Self::FifteenMinutes => 15 * MINUTE_MS,
            Self::OneHour => 60 * MINUTE_MS,
            Self::FourHours => 240 * MINUTE_MS,
            Self::OneDay => DAY_MS,
        }
    }

    /// Returns the stored interval from which this one is combined.
    pub const fn stored(self) -> Self {
        match self {
            Self::FifteenMinutes => Self::FiveMinutes,
            Self::FourHours => Self::OneHour,
            stored => stored,
        }
    }

    /// Returns the start of the interval that contains `at`.
    pub const fn floor(self, at: Timestamp) -> Timestamp {
        at.plus_ms(-at.ms().rem_euclid(self.ms()))
    }

    /// Returns the first start of an interval at or after `at`.
    pub const fn ceil(self, at: Timestamp) -> Timestamp {
        at.plus_ms((-at.ms()).rem_euclid(self.ms()))
    }

    /// Returns the number of intervals that overlap the time from `from` (inclusive) to `to`
    /// (exclusive).
    pub const fn count(self, from: Timestamp, to: Timestamp) -> i64 {
        self.ceil(to).since_ms(self.floor(from)) / self.ms()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an interval")]
pub struct ParseIntervalError;

impl FromStr for Interval {
    type Err = ParseIntervalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|interval| interval.as_str() == text).ok_or(ParseIntervalError)
    }
}

/// The open, high, low and close of a value over several trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// The value after the first trade.
    pub open: Wad,
    pub high: Wad,
    pub low: Wad,
    /// The value after the last trade.
    pub close: Wad,
}

impl Course {
    /// Returns the course of a single trade.
    pub const fn at(value: Wad) -> Self {
        Self { open: value, high: value, low: value, close: value }
    }

    /// Appends the value after the next trade.
    pub fn push(&mut self, value: Wad) {
        self.join(&Self::at(value));
    }

    /// Appends a later course.
    pub fn join(&mut self, later: &Self) {
        self.high = self.high.max(later.high);
        self.low = self.low.min(later.low);
        self.close = later.close;
    }

    /// Returns the course of the distance to a constant quantity, if `self` is the course of the
    /// cost.
    // `distance` grows with the cost, so high and low keep their places.
    fn above(&self, quantity: Wad) -> Self {
        let [open, high, low, close] =
            [self.open, self.high, self.low, self.close].map(|cost| distance(cost, quantity));
        Self { open, high, low, close }
    }
}

/// Returns the distance `C - q`; the price is `exp(-distance / b)`. Never negative, because no
/// quantity exceeds the cost.
pub fn distance(cost: Wad, quantity: Wad) -> Wad {
    cost.checked_sub(quantity).unwrap_or_default()
}

/// The parts of a trade that affect candles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandleTrade {
    /// The block's time.
    pub at: Timestamp,
    pub block: u64,
    pub outcome_index: u8,
    /// Includes the fee.
    pub usdc: Usdc,
    pub tokens: Wad,
    /// The market maker's cost after the trade.
    pub cost: Wad,
    /// The outcome's quantity after the trade.
    pub quantity: Wad,
}

/// The cost and all quantities after complete sets were split or merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    pub cost: Wad,
    /// In the order of the outcomes.
    pub quantities: Vec<Wad>,
}

/// The candle of one outcome in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candle {
    /// The distance after each trade of the market. The highest distance is the lowest price.
    pub distance: Course,
    /// USDC traded on this outcome, fees included.
    pub volume: Usdc,
    /// Tokens of this outcome that were traded.
    pub tokens: Wad,
    /// Trades on this outcome.
    pub trades: u64,
}

impl Candle {
    const fn untraded(distance: Course) -> Self {
        Self { distance, volume: Usdc::ZERO, tokens: Wad::ZERO, trades: 0 }
    }

    fn count(&mut self, usdc: Usdc, tokens: Wad, trades: u64) {
        // An overflow leaves the sum unchanged instead of panicking.
        self.volume = self.volume.checked_add(usdc).unwrap_or(self.volume);
        self.tokens = self.tokens.checked_add(tokens).unwrap_or(self.tokens);
        self.trades += trades;
    }
}

/// The trades of a market in one interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub interval: Interval,
    pub start: Timestamp,
    /// The time of the last trade.
    pub at: Timestamp,
    /// The block of the last trade.
    pub block: u64,
    /// The market's number of trades from its start to the end of this bucket.
    pub market_trades: u64,
    /// The market maker's cost after each trade.
    pub cost: Course,
    /// Each outcome's quantity after the last trade.
    pub quantities: Vec<Wad>,
    /// The outcomes that were traded, or whose courses were fixed by [`Self::change_level`].
    pub traded: BTreeMap<u8, Candle>,
}

impl Bucket {
    /// Creates the bucket of one trade. `quantities` are the quantities after it, and
    /// `market_trades` is its number within the market.
    pub fn of(interval: Interval, trade: &CandleTrade, quantities: Vec<Wad>, market_trades: u64) -> Self {
        let distance = Course::at(distance(trade.cost, trade.quantity));
        let mut candle = Candle::untraded(distance);
        candle.count(trade.usdc, trade.tokens, 1);
        Self {
            interval,
            start: interval.floor(trade.at),
            at: trade.at,
            block: trade.block,
            market_trades,
            cost: Course::at(trade.cost),
            quantities,
            traded: BTreeMap::from([(trade.outcome_index, candle)]),
        }
    }

    /// Adds the market's next trade.
    pub fn add(&mut self, trade: &CandleTrade) {
        // Compute the outcome's candle before the trade changes its quantity. Up to here it follows
        // from the cost's course.
        let mut candle = self.candle(trade.outcome_index);
        candle.count(trade.usdc, trade.tokens, 1);
        self.traded.insert(trade.outcome_index, candle);
        self.cost.push(trade.cost);
        if let Some(quantity) = self.quantities.get_mut(usize::from(trade.outcome_index)) {
            *quantity = trade.quantity;
        }
        for (index, candle) in &mut self.traded {
            let quantity = self.quantities.get(usize::from(*index)).copied().unwrap_or_default();
            candle.distance.push(distance(trade.cost, quantity));
        }
        self.at = trade.at;
        self.block = trade.block;
        self.market_trades += 1;
    }

    /// Records that complete sets were split or merged. This changes `C` and every quantity by the
    /// same amount and no price.
    ///
    /// It first fixes the courses of all outcomes, because costs before and after the change are
    /// not comparable.
    pub fn change_level(&mut self, level: &Level) {
        for index in (0..=u8::MAX).take(self.quantities.len()) {
            let candle = self.candle(index);
            self.traded.insert(index, candle);
        }
        self.cost.push(level.cost);
        self.quantities.clone_from(&level.quantities);
    }

    /// Appends the market's next bucket, which must be later within the same interval.
    pub fn join(&mut self, later: Self) {
        // An outcome traded in only one of the buckets still needs its course in the other one.
        let traded: BTreeSet<u8> = self.traded.keys().chain(later.traded.keys()).copied().collect();
        let joined = |index: u8| {
            let (mut candle, next) = (self.candle(index), later.candle(index));
            candle.distance.join(&next.distance);
            candle.count(next.volume, next.tokens, next.trades);
            (index, candle)
        };
        self.traded = traded.into_iter().map(joined).collect();
        self.cost.join(&later.cost);
        self.at = later.at;
        self.block = later.block;
        self.market_trades = later.market_trades;
        self.quantities = later.quantities;
    }

    /// Returns the bucket with the same trades for a longer interval.
    #[must_use]
    pub fn widened(self, interval: Interval) -> Self {
        Self { interval, start: interval.floor(self.start), ..self }
    }

    /// Returns the candle of one outcome, even if only other outcomes were traded.
    pub fn candle(&self, outcome_index: u8) -> Candle {
        let quantity = self.quantities.get(usize::from(outcome_index)).copied().unwrap_or_default();
        let untraded = || Candle::untraded(self.cost.above(quantity));
        self.traded.get(&outcome_index).copied().unwrap_or_else(untraded)
    }

    pub fn trades(&self) -> u64 {
        self.traded.values().map(|candle| candle.trades).sum()
    }
}

/// Combines consecutive buckets of one market into buckets of `interval`. The buckets must be in
/// order.
pub fn roll_up(buckets: impl IntoIterator<Item = Bucket>, interval: Interval) -> Vec<Bucket> {
    let mut rolled: Vec<Bucket> = Vec::new();
    for bucket in buckets {
        let wide = bucket.widened(interval);
        match rolled.last_mut() {
            Some(last) if last.start == wide.start => last.join(wide),
            // Buckets come in order, so only the last one can belong to the same interval.
            _ => rolled.push(wide),
        }
    }
    rolled
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const OUTCOMES: u8 = 3;
    const OPENING: u64 = 1_000;

    /// Builds trades from the seconds since the previous trade, the outcome and the change of its
    /// quantity.
    fn trades(moves: &[(u8, i64, i64)]) -> Vec<(CandleTrade, Vec<Wad>)> {
        let mut quantities = vec![500u64; usize::from(OUTCOMES)];
        let (mut at, mut cost) = (Timestamp::from_ms(7), OPENING);
        let trade = |(block, (outcome_index, moved, wait_s)): (u64, &(u8, i64, i64))| {
            at = at.plus_ms(wait_s * 1_000);
            let quantity = &mut quantities[usize::from(*outcome_index)];
            *quantity = quantity.saturating_add_signed(*moved);
            cost = OPENING + quantities.iter().sum::<u64>() / 2 + block % 3;
            let wad = |value: u64| Wad::from(u128::from(value));
            let trade = CandleTrade {
                at,
                block,
                outcome_index: *outcome_index,
                usdc: Usdc::from_atomic(moved.unsigned_abs()),
                tokens: wad(moved.unsigned_abs() * 2),
                cost: wad(cost),
                quantity: wad(quantities[usize::from(*outcome_index)]),
            };
            (trade, quantities.iter().copied().map(wad).collect())
        };
        (0u64..).zip(moves).map(trade).collect()
    }

    fn folded(trades: &[(CandleTrade, Vec<Wad>)], interval: Interval) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for (n, (trade, quantities)) in (1u64..).zip(trades) {
            match buckets.last_mut() {
                Some(last) if last.start == interval.floor(trade.at) => last.add(trade),
                _ => buckets.push(Bucket::of(interval, trade, quantities.clone(), n)),
            }
        }
        buckets
    }

    /// Computes a candle from the definition: records every outcome's distance after every trade.
    fn by_definition(trades: &[(CandleTrade, Vec<Wad>)], bucket: &Bucket, outcome: u8) -> Candle {
        let of_bucket = trades.iter().filter(|(trade, _)| bucket.interval.floor(trade.at) == bucket.start);
        let at = |(trade, quantities): &(CandleTrade, Vec<Wad>)| {
            distance(trade.cost, quantities[usize::from(outcome)])
        };
        let seen: Vec<Wad> = of_bucket.clone().map(at).collect();
        let own = of_bucket.filter(|(trade, _)| trade.outcome_index == outcome);
        Candle {
            distance: Course {
                open: seen[0],
                high: seen.iter().copied().max().unwrap(),
                low: seen.iter().copied().min().unwrap(),
                close: *seen.last().unwrap(),
            },
            volume: own.clone().fold(Usdc::ZERO, |sum, (trade, _)| sum.checked_add(trade.usdc).unwrap()),
            tokens: own.clone().fold(Wad::ZERO, |sum, (trade, _)| sum.checked_add(trade.tokens).unwrap()),
            trades: own.count() as u64,
        }
    }

    proptest! {
        #[test]
        fn a_candle_reflects_every_trade_of_its_outcome(
            moves in vec((0..OUTCOMES, -200i64..200, 0i64..200), 1..60)
        ) {
            let trades = trades(&moves);
            for interval in Interval::STORED {
                let buckets = folded(&trades, interval);
                prop_assert_eq!(buckets.iter().map(Bucket::trades).sum::<u64>(), trades.len() as u64);
                for bucket in &buckets {
                    for outcome in 0..OUTCOMES {
                        prop_assert_eq!(bucket.candle(outcome), by_definition(&trades, bucket, outcome));
                    }
                }
            }
        }

        #[test]
        fn merged_buckets_equal_those_of_the_longer_interval(
            moves in vec((0..OUTCOMES, -200i64..200, 0i64..2_000), 1..60)
        ) {
            let trades = trades(&moves);
            for interval in Interval::ALL {
                let rolled = roll_up(folded(&trades, interval.stored()), interval);
                prop_assert_eq!(&rolled, &roll_up(folded(&trades, Interval::OneMinute), interval));
                let whole = folded(&trades, interval);
                prop_assert_eq!(rolled.len(), whole.len());
                for (rolled, whole) in rolled.iter().zip(&whole) {
                    prop_assert_eq!((rolled.start, rolled.market_trades), (whole.start, whole.market_trades));
                    for outcome in 0..OUTCOMES {
                        prop_assert_eq!(rolled.candle(outcome), whole.candle(outcome));
                    }
                }
            }
        }
    }

    #[test]
    fn intervals_are_aligned_to_utc_and_half_open() {
        let at: Timestamp = "2026-04-29T13:59:59.999Z".parse().unwrap();
        for (interval, start, end) in [
            (Interval::OneMinute, "2026-04-29T13:59:00Z", "2026-04-29T14:00:00Z"),
            (Interval::FifteenMinutes, "2026-04-29T13:45:00Z", "2026-04-29T14:00:00Z"),
            (Interval::FourHours, "2026-04-29T12:00:00Z", "2026-04-29T16:00:00Z"),
            (Interval::OneDay, "2026-04-29T00:00:00Z", "2026-04-30T00:00:00Z"),
        ] {
            let (start, end) = (start.parse().unwrap(), end.parse().unwrap());
            assert_eq!((interval.floor(at), interval.ceil(at)), (start, end), "{interval:?}");
            assert_eq!((interval.floor(end), interval.ceil(end)), (end, end), "{interval:?}");
            assert_eq!((interval.count(start, end), interval.count(at, end.plus_ms(1))), (1, 2));
        }
    }

    #[test]
    fn interval_names_round_trip_and_others_are_rejected() {
        for interval in Interval::ALL {
            assert_eq!(interval.as_str().parse(), Ok(interval));
            assert_eq!(serde_json::to_value(interval).unwrap(), interval.as_str());
            assert!(interval.ms() / interval.stored().ms() <= 4);
        }
        for text in ["", "1M", "60", "1w", "1h "] {
            assert_eq!(text.parse::<Interval>(), Err(ParseIntervalError), "{text}");
        }
    }
}
