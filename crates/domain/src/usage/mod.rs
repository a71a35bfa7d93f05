//! Usage of a key, counted in hours and reported in windows of whole hours.
//!
//! A window contains every hour that began after the window's start. It omits the part of an hour
//! before the first of them, and includes the current hour as far as it has passed. So 24 hours are
//! 23 whole hours and the current one.

mod graph;
mod histogram;

use serde::Serialize;
use utoipa::ToSchema;

pub use graph::{GraphRange, UsagePoint};
pub use histogram::{Histogram, OCTAVES, STEPS};

use crate::Timestamp;
use crate::code::ErrorCode;
use crate::money::Usdc;
use crate::time::{DAY_MS, HOUR_MS};

/// The retention of hourly counts: the longest window and one day.
pub const KEEP_MS: i64 = 31 * DAY_MS;

/// Returns the start of the hour that contains `at`.
pub const fn hour_of(at: Timestamp) -> Timestamp {
    at.plus_ms(-at.ms().rem_euclid(HOUR_MS))
}

/// One value for each window of a key's usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct Windows<T> {
    /// The last 24 hours.
    #[serde(rename = "24h")]
    pub day: T,
    /// The last 7 days.
    #[serde(rename = "7d")]
    pub week: T,
    /// The last 30 days.
    #[serde(rename = "30d")]
    pub month: T,
}

/// Returns the starts of the windows that end at `now`. A window contains the hours that began
/// after its start.
pub const fn window_starts(now: Timestamp) -> Windows<Timestamp> {
    Windows { day: now.plus_ms(-DAY_MS), week: now.plus_ms(-7 * DAY_MS), month: now.plus_ms(-30 * DAY_MS) }
}

impl<T> Windows<T> {
    /// Returns the values of those windows ending at `now` that contain the hour starting at
    /// `hour`.
    pub fn holding(&mut self, hour: Timestamp, now: Timestamp) -> impl Iterator<Item = &mut T> {
        let starts = window_starts(now);
        let each =
            [(starts.day, &mut self.day), (starts.week, &mut self.week), (starts.month, &mut self.month)];
        each.into_iter().filter(move |(start, _)| hour > *start).map(|(_, value)| value)
    }

    /// Applies `of` to the value of each window.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> Windows<U> {
        Windows { day: of(&self.day), week: of(&self.week), month: of(&self.month) }
    }
}

/// The rejections that are counted per key: those made before the request itself is examined.
pub const REFUSALS: [ErrorCode; 6] = [
    ErrorCode::ApiKeyExpired,
    ErrorCode::ApiKeyRevoked,
    ErrorCode::InsufficientScope,
    ErrorCode::IpNotAllowed,
    ErrorCode::RateLimitExceeded,
    ErrorCode::RequestSignatureInvalid,
];

/// Counts of a key's requests by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// The latencies of all accepted requests, whatever their response.
    pub latency: Histogram,
    refusals: [u64; REFUSALS.len()],
}

impl RequestCounts {
    /// Counts a request, with the error code if it was rejected. Rejections listed in [`REFUSALS`]
    /// have no latency, because they would make the other requests look fast.
    pub fn record(&mut self, code: Option<ErrorCode>, latency_ms: u64) {
        match code.and_then(counted_index) {
            Some(place) => self.refusals[place] += 1,
            None => self.latency.record(latency_ms),
        }
    }

    /// Adds `count` rejections with this code. Ignores codes that are not in [`REFUSALS`].
    pub fn add_refusals(&mut self, code: ErrorCode, count: u64) {
        if let Some(place) = counted_index(code) {
            self.refusals[place] = self.refusals[place].saturating_add(count);
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        for (code, count) in other.refusals() {
            self.add_refusals(code, count);
        }
    }

    /// Iterates over the codes with counts, in a fixed order.
    pub fn refusals(&self) -> impl Iterator<Item = (ErrorCode, u64)> {
        REFUSALS.into_iter().zip(self.refusals).filter(|(_, count)| *count > 0)
    }

    /// Returns the number of rejections by the rate limit.
    pub fn rate_limit_rejections(&self) -> u64 {
        self.count_where(|code| code == ErrorCode::RateLimitExceeded)
    }

    /// Returns the number of rejections because of the key itself, its address, its signature or
    /// its scopes.
    pub fn auth_failures(&self) -> u64 {
        self.count_where(|code| code != ErrorCode::RateLimitExceeded)
    }

    fn count_where(&self, counts: impl Fn(ErrorCode) -> bool) -> u64 {
        self.refusals().filter(|(code, _)| counts(*code)).map(|(_, count)| count).sum()
    }
}

fn counted_index(code: ErrorCode) -> Option<usize> {
    REFUSALS.iter().position(|counted| *counted == code)
}

/// The key's trades. Each change of status counts in the hour in which it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TradeCounts {
    /// Trades that were accepted.
    pub created: u64,
    /// Trades that completed on chain.
    pub completed: u64,
    /// Trades that failed.
    pub failed: u64,
    /// Trades that the risk engine rejected.
    pub rejected: u64,
    /// The USDC that completed trades moved, fees included.
    pub volume_usdc: Usdc,
}

impl TradeCounts {
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.created += other.created;
        self.completed += other.completed;
        self.failed += other.failed;
        self.rejected += other.rejected;
        // Saturates, because a report must not fail after an overflow.
        let volume = self.volume_usdc.checked_add(other.volume_usdc);
        self.volume_usdc = volume.unwrap_or(Usdc::from_atomic(i64::MAX as u64));
    }
}

/// The key's share of the cost of the transactions that executed its trades, counted once their
/// blocks are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GasCounts {
    /// Gas units.
    pub gas_used: u64,
    /// The cost in the chain's native currency, as a decimal string of wei.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, pattern = "^[0-9]+$")]
    pub fee_wei: u128,
}

fn as_text<S: serde::Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

impl GasCounts {
    /// Returns one trade's share of a transaction's gas and fee, rounded up so that the shares
    /// cover the whole cost.
    pub fn part_of(gas_used: u64, wei_per_gas: u128, trades: u64) -> Self {
        // Avoids a division by zero.
        let trades = trades.max(1);
        let fee_wei = u128::from(gas_used).saturating_mul(wei_per_gas).div_ceil(u128::from(trades));
        Self { gas_used: gas_used.div_ceil(trades), fee_wei }
    }

    /// Returns the share of several trades.
    #[must_use]
    pub fn times(self, trades: u64) -> Self {
        let fee_wei = self.fee_wei.saturating_mul(u128::from(trades));
        Self { gas_used: self.gas_used.saturating_mul(trades), fee_wei }
    }

    /// Adds the counts of `other`.
    pub const fn merge(&mut self, other: &Self) {
        self.gas_used = self.gas_used.saturating_add(other.gas_used);
        self.fee_wei = self.fee_wei.saturating_add(other.fee_wei);
    }
}

/// Deliveries to a key's webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookCounts {
    /// Events and redeliveries that were delivered.
    pub delivered: u64,
    /// Events and redeliveries that failed terminally.
    pub failed: u64,
    /// Events and redeliveries that are not delivered yet.
    pub pending: u64,
    /// Failed attempts, including final ones.
    pub failed_attempts: u64,
}

impl WebhookCounts {
    /// Adds the counts of `other`.
    pub const fn merge(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.pending += other.pending;
        self.failed_attempts += other.failed_attempts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn held(hour: Timestamp, now: Timestamp) -> [bool; 3] {
        let mut windows = Windows::<bool>::default();
        windows.holding(hour, now).for_each(|held| *held = true);
        [windows.day, windows.week, windows.month]
    }

    #[test]
    fn an_hour_starts_at_its_first_millisecond() {
        assert_eq!(hour_of(NOON), NOON);
        assert_eq!(hour_of(NOON.plus_ms(HOUR_MS - 1)), NOON);
        assert_eq!(hour_of(NOON.plus_ms(-1)), NOON.plus_ms(-HOUR_MS));
        assert_eq!(hour_of(Timestamp::from_ms(-1)).ms(), -HOUR_MS);
    }

    #[test]
    fn a_window_contains_the_hours_that_started_within_it() {
        for (days, inside, outside) in [
            (1, [true; 3], [false, true, true]),
            (7, [false, true, true], [false, false, true]),
            (30, [false, false, true], [false; 3]),
        ] {
            let now = NOON.plus_ms(days * DAY_MS);
            assert_eq!(held(NOON, now.plus_ms(-1)), inside, "{days}");
            assert_eq!(held(NOON, now), outside, "{days}");
        }
        assert_eq!(held(NOON, NOON), [true; 3]);
    }

    #[test]
    fn early_rejections_are_counted_by_code_without_latency() {
        let mut counts = RequestCounts::default();
        for code in REFUSALS {
            counts.record(Some(code), 9);
        }
        counts.record(Some(ErrorCode::RateLimitExceeded), 9);
        assert_eq!((counts.rate_limit_rejections(), counts.auth_failures()), (2, 5));
        assert_eq!(counts.refusals().count(), REFUSALS.len());
        assert_eq!(counts.latency.count(), 0);
        counts.record(Some(ErrorCode::MarketNotFound), 9);
        counts.record(None, 9);
        assert_eq!((counts.latency.count(), counts.auth_failures()), (2, 5));
    }

    #[test]
    fn gas_shares_are_rounded_up_and_cover_the_transaction() {
        let part = GasCounts::part_of(100, 7, 3);
        assert_eq!(part, GasCounts { gas_used: 34, fee_wei: 234 });
        assert_eq!(part.times(3), GasCounts { gas_used: 102, fee_wei: 702 });
        assert_eq!(GasCounts::part_of(100, 7, 1), GasCounts { gas_used: 100, fee_wei: 700 });
        assert_eq!(serde_json::to_string(&part).unwrap(), r#"{"gasUsed":34,"feeWei":"234"}"#);
    }

    #[test]
    fn merged_counts_are_their_sums() {
        let mut one = RequestCounts::default();
        one.record(None, 5);
        one.record(Some(ErrorCode::ApiKeyRevoked), 0);
        let mut both = one;
        both.merge(&one);
        assert_eq!((both.latency.count(), both.auth_failures()), (2, 2));
        let trade = TradeCounts {
            created: 3,
            completed: 2,
            failed: 1,
            rejected: 4,
            volume_usdc: Usdc::from_whole(5),
        };
        let mut trades = trade;
        trades.merge(&trade);
        let twice = TradeCounts {
            created: 6,
            completed: 4,
            failed: 2,
            rejected: 8,
            volume_usdc: Usdc::from_whole(10),
        };
        assert_eq!(trades, twice);
    }
}
