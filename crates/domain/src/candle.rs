//! Candles: what trading did to a market's prices, interval by interval.
//!
//! An outcome's price is `exp((q - C) / b)`, so within one market the distance `C - q` says as much as the price, and it is
//! an exact integer: the smaller the distance, the higher the price. A trade changes the `q` of its own outcome and the `C`
//! of the market; every other outcome's distance moves with `C` alone. A [`Bucket`] therefore keeps the course of `C`, the
//! quantities at its end, and a course of its own for those outcomes alone that were traded in it: a trade costs no more in a
//! market of two hundred outcomes than in one of two.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::Serialize;

use crate::time::{DAY_MS, MINUTE_MS};
use crate::{Timestamp, Usdc, Wad};

/// How long a candle is. Candles are aligned to UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Interval {
    /// A minute.
    #[serde(rename = "1m")]
    OneMinute,
    /// Five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// A quarter of an hour.
    #[serde(rename = "15m")]
    FifteenMinutes,
    /// An hour.
    #[serde(rename = "1h")]
    OneHour,
    /// Four hours, from midnight on.
    #[serde(rename = "4h")]
    FourHours,
    /// A day.
    #[serde(rename = "1d")]
    OneDay,
}

impl Interval {
    /// Every interval, the shortest first.
    pub const ALL: [Self; 6] = [
        Self::OneMinute,
        Self::FiveMinutes,
        Self::FifteenMinutes,
        Self::OneHour,
        Self::FourHours,
        Self::OneDay,
    ];

    /// The intervals whose buckets are stored. Any other is put together from at most four of one of them.
    pub const STORED: [Self; 4] = [Self::OneMinute, Self::FiveMinutes, Self::OneHour, Self::OneDay];

    /// The word of the APIs.
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

    /// Its length in milliseconds.
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

    /// The stored interval that this one is put together from.
    pub const fn stored(self) -> Self {
        match self {
            Self::FifteenMinutes => Self::FiveMinutes,
            Self::FourHours => Self::OneHour,
            stored => stored,
        }
    }

    /// The start of the interval that holds `at`.
    pub const fn floor(self, at: Timestamp) -> Timestamp {
        at.plus_ms(-at.ms().rem_euclid(self.ms()))
    }

    /// The first start of an interval at `at` or after it.
    pub const fn ceil(self, at: Timestamp) -> Timestamp {
        at.plus_ms((-at.ms()).rem_euclid(self.ms()))
    }

    /// How many intervals the time from `from` (inclusive) to `to` (exclusive) touches.
    pub const fn count(self, from: Timestamp, to: Timestamp) -> i64 {
        self.ceil(to).since_ms(self.floor(from)) / self.ms()
    }
}

/// The text is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an interval")]
pub struct ParseIntervalError;

impl FromStr for Interval {
    type Err = ParseIntervalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|interval| interval.as_str() == text).ok_or(ParseIntervalError)
    }
}

/// The course of a number over some trades: as it was after the first, at its highest and lowest, and after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// After the first trade.
    pub open: Wad,
    /// At its highest.
    pub high: Wad,
    /// At its lowest.
    pub low: Wad,
    /// After the last trade.
    pub close: Wad,
}

impl Course {
    /// After one trade.
    pub const fn at(value: Wad) -> Self {
        Self { open: value, high: value, low: value, close: value }
    }

    /// After one more trade.
    pub fn push(&mut self, value: Wad) {
        self.join(&Self::at(value));
    }

    /// With a later course behind it.
    pub fn join(&mut self, later: &Self) {
        self.high = self.high.max(later.high);
        self.low = self.low.min(later.low);
        self.close = later.close;
    }

    /// The course of the distance to a quantity that did not change meanwhile, where this is the course of the cost.
    fn above(&self, quantity: Wad) -> Self {
        let [open, high, low, close] =
            [self.open, self.high, self.low, self.close].map(|cost| distance(cost, quantity));
        Self { open, high, low, close }
    }
}

/// The distance `C - q`, of which the price is `exp(-distance / b)`. Never negative: no quantity exceeds the cost.
pub fn distance(cost: Wad, quantity: Wad) -> Wad {
    cost.checked_sub(quantity).unwrap_or_default()
}

/// A trade, as far as candles go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trade {
    /// The block's time.
    pub at: Timestamp,
    /// The block.
    pub block: u64,
    /// The outcome that was traded.
    pub outcome_index: u8,
    /// USDC moved, fee included.
    pub usdc: Usdc,
    /// Tokens moved.
    pub tokens: Wad,
    /// The market maker's cost after it.
    pub cost: Wad,
    /// The outcome's quantity after it.
    pub quantity: Wad,
}

/// One outcome in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candle {
    /// The distance after each trade of the market. Its high is the price's low.
    pub distance: Course,
    /// USDC traded on the outcome.
    pub volume: Usdc,
    /// Tokens of the outcome that were traded.
    pub tokens: Wad,
    /// Trades on the outcome.
    pub trades: u64,
}

impl Candle {
    const fn untraded(distance: Course) -> Self {
        Self { distance, volume: Usdc::ZERO, tokens: Wad::ZERO, trades: 0 }
    }

    fn count(&mut self, usdc: Usdc, tokens: Wad, trades: u64) {
        self.volume = self.volume.checked_add(usdc).unwrap_or(self.volume);
        self.tokens = self.tokens.checked_add(tokens).unwrap_or(self.tokens);
        self.trades += trades;
    }
}

/// A market in one interval in which it was traded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// How long it is.
    pub interval: Interval,
    /// When it begins.
    pub start: Timestamp,
    /// When its last trade was made.
    pub at: Timestamp,
    /// The block of its last trade.
    pub block: u64,
    /// How many trades the market has had by its end, from the market's first on.
    pub market_trades: u64,
    /// The market maker's cost after each trade.
    pub cost: Course,
    /// Each outcome's quantity after the last trade.
    pub quantities: Vec<Wad>,
    /// The outcomes that were traded.
    pub traded: BTreeMap<u8, Candle>,
}

impl Bucket {
    /// The bucket of one trade, the market's `market_trades`th, which left these quantities.
    pub fn of(interval: Interval, trade: &Trade, quantities: Vec<Wad>, market_trades: u64) -> Self {
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

    /// Takes the market's next trade in.
    pub fn add(&mut self, trade: &Trade) {
        // Before the trade moves them, the cost's course and the outcome's quantity say what the outcome did so far.
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

    /// Takes in the market's next bucket, of a later part of this one's time.
    pub fn join(&mut self, later: Self) {
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

    /// The same trades as part of a longer interval.
    #[must_use]
    pub fn widened(self, interval: Interval) -> Self {
        Self { interval, start: interval.floor(self.start), ..self }
    }

    /// One outcome in this interval, traded in it or moved by the trades of the others.
    pub fn candle(&self, outcome_index: u8) -> Candle {
        let quantity = self.quantities.get(usize::from(outcome_index)).copied().unwrap_or_default();
        let untraded = || Candle::untraded(self.cost.above(quantity));
        self.traded.get(&outcome_index).copied().unwrap_or_else(untraded)
    }

    /// How many trades were made in it.
    pub fn trades(&self) -> u64 {
        self.traded.values().map(|candle| candle.trades).sum()
    }
}

/// Puts consecutive buckets of one market, in their order, together to those of `interval`.
pub fn roll_up(buckets: impl IntoIterator<Item = Bucket>, interval: Interval) -> Vec<Bucket> {
    let mut rolled: Vec<Bucket> = Vec::new();
    for bucket in buckets {
        let wide = bucket.widened(interval);
        match rolled.last_mut() {
            Some(last) if last.start == wide.start => last.join(wide),
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

    /// Trades by the seconds since the one before, the outcome, and what they add to or take from its quantity.
    fn trades(moves: &[(u8, i64, i64)]) -> Vec<(Trade, Vec<Wad>)> {
        let mut quantities = vec![500u64; usize::from(OUTCOMES)];
        let (mut at, mut cost) = (Timestamp::from_ms(7), OPENING);
        let trade = |(block, (outcome_index, moved, wait_s)): (u64, &(u8, i64, i64))| {
            at = at.plus_ms(wait_s * 1_000);
            let quantity = &mut quantities[usize::from(*outcome_index)];
            *quantity = quantity.saturating_add_signed(*moved);
            cost = OPENING + quantities.iter().sum::<u64>() / 2 + block % 3;
            let wad = |value: u64| Wad::from(u128::from(value));
            let trade = Trade {
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

    fn folded(trades: &[(Trade, Vec<Wad>)], interval: Interval) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for (n, (trade, quantities)) in (1u64..).zip(trades) {
            match buckets.last_mut() {
                Some(last) if last.start == interval.floor(trade.at) => last.add(trade),
                _ => buckets.push(Bucket::of(interval, trade, quantities.clone(), n)),
            }
        }
        buckets
    }

    /// The same by definition: every outcome's distance is written down after every trade.
    fn by_definition(trades: &[(Trade, Vec<Wad>)], bucket: &Bucket, outcome: u8) -> Candle {
        let of_bucket = trades.iter().filter(|(trade, _)| bucket.interval.floor(trade.at) == bucket.start);
        let at =
            |(trade, quantities): &(Trade, Vec<Wad>)| distance(trade.cost, quantities[usize::from(outcome)]);
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
        fn every_outcomes_candle_is_what_all_trades_did_to_it(
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
        fn buckets_put_together_are_those_of_the_longer_interval(
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
    fn an_interval_is_named_as_it_is_written() {
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
