//! What a key's use is counted in: hours, and windows that are sums of whole hours.
//!
//! A window that ends now holds every hour that began after its start, so the part of an hour that lies before the first
//! of them is left out, and the present hour is counted as far as it has come: 24 hours are 23 whole ones and the
//! present one.

mod histogram;

use serde::Serialize;
use utoipa::ToSchema;

pub use histogram::{Histogram, OCTAVES, STEPS};

use crate::Timestamp;
use crate::code::ErrorCode;
use crate::money::Usdc;
use crate::time::{DAY_MS, MINUTE_MS};

/// One hour, in milliseconds.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// For how long hours are kept: the longest window and a day.
pub const KEEP_MS: i64 = 31 * DAY_MS;

/// The start of the hour that `at` lies in.
pub const fn hour_of(at: Timestamp) -> Timestamp {
    at.plus_ms(-at.ms().rem_euclid(HOUR_MS))
}

/// One value for each of the windows that a key's use is told in.
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

/// Where the windows that end at `now` begin: they hold the hours that began later.
pub const fn window_starts(now: Timestamp) -> Windows<Timestamp> {
    Windows { day: now.plus_ms(-DAY_MS), week: now.plus_ms(-7 * DAY_MS), month: now.plus_ms(-30 * DAY_MS) }
}

impl<T> Windows<T> {
    /// The values of those windows ending at `now` that hold the hour that began at `hour`.
    pub fn holding(&mut self, hour: Timestamp, now: Timestamp) -> impl Iterator<Item = &mut T> {
        let starts = window_starts(now);
        let each =
            [(starts.day, &mut self.day), (starts.week, &mut self.week), (starts.month, &mut self.month)];
        each.into_iter().filter(move |(start, _)| hour > *start).map(|(_, value)| value)
    }

    /// The same windows of something made of each value.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> Windows<U> {
        Windows { day: of(&self.day), week: of(&self.week), month: of(&self.month) }
    }
}

/// The refusals that are counted for the key that they are about: those of the door, before a request is looked at.
pub const REFUSALS: [ErrorCode; 6] = [
    ErrorCode::ApiKeyExpired,
    ErrorCode::ApiKeyRevoked,
    ErrorCode::InsufficientScope,
    ErrorCode::IpNotAllowed,
    ErrorCode::RateLimitExceeded,
    ErrorCode::RequestSignatureInvalid,
];

/// What became of a key's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// How long those took that were let in, whatever their answer.
    pub latency: Histogram,
    refusals: [u64; REFUSALS.len()],
}

impl RequestCounts {
    /// Counts a request that was answered, with this code where it was refused. One that was refused at the door has no
    /// latency: it would make the others look fast.
    pub fn record(&mut self, code: Option<ErrorCode>, latency_ms: u64) {
        match code.and_then(place) {
            Some(place) => self.refusals[place] += 1,
            None => self.latency.record(latency_ms),
        }
    }

    /// Adds refusals with a code. Other codes than [`REFUSALS`] are not counted.
    pub fn add_refusals(&mut self, code: ErrorCode, count: u64) {
        if let Some(place) = place(code) {
            self.refusals[place] = self.refusals[place].saturating_add(count);
        }
    }

    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        for (code, count) in other.refusals() {
            self.add_refusals(code, count);
        }
    }

    /// The codes that were met, in their fixed order, and how often each was.
    pub fn refusals(&self) -> impl Iterator<Item = (ErrorCode, u64)> {
        REFUSALS.into_iter().zip(self.refusals).filter(|(_, count)| *count > 0)
    }

    /// How often the rate limit refused.
    pub fn rate_limit_rejections(&self) -> u64 {
        self.count_where(|code| code == ErrorCode::RateLimitExceeded)
    }

    /// How often the key itself, its address, its signature or its scopes were refused.
    pub fn auth_failures(&self) -> u64 {
        self.count_where(|code| code != ErrorCode::RateLimitExceeded)
    }

    fn count_where(&self, counts: impl Fn(ErrorCode) -> bool) -> u64 {
        self.refusals().filter(|(code, _)| counts(*code)).map(|(_, count)| count).sum()
    }
}

fn place(code: ErrorCode) -> Option<usize> {
    REFUSALS.iter().position(|counted| *counted == code)
}

/// What became of a key's trades, each counted in the hour in which it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TradeCounts {
    /// Trades that were accepted.
    pub created: u64,
    /// Trades that the chain has made.
    pub completed: u64,
    /// Trades that failed.
    pub failed: u64,
    /// Trades that the risk engine refused.
    pub rejected: u64,
    /// The USDC that completed trades moved, fees included.
    pub volume_usdc: Usdc,
}

impl TradeCounts {
    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        self.created += other.created;
        self.completed += other.completed;
        self.failed += other.failed;
        self.rejected += other.rejected;
        let volume = self.volume_usdc.checked_add(other.volume_usdc);
        self.volume_usdc = volume.unwrap_or(Usdc::from_atomic(i64::MAX as u64));
    }
}

/// What the transactions cost that carried a key's trades: its part of each, once their blocks are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GasCounts {
    /// Gas units.
    pub gas_used: u64,
    /// What they cost in the chain's native currency: a decimal string of wei.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, pattern = "^[0-9]+$")]
    pub fee_wei: u128,
}

fn as_text<S: serde::Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

impl GasCounts {
    /// The part of one of `trades` that a transaction carried, rounded up: the parts cover what was paid.
    pub fn part_of(gas_used: u64, wei_per_gas: u128, trades: u64) -> Self {
        let trades = trades.max(1);
        let fee_wei = u128::from(gas_used).saturating_mul(wei_per_gas).div_ceil(u128::from(trades));
        Self { gas_used: gas_used.div_ceil(trades), fee_wei }
    }

    /// The same for several trades.
    #[must_use]
    pub fn times(self, trades: u64) -> Self {
        let fee_wei = self.fee_wei.saturating_mul(u128::from(trades));
        Self { gas_used: self.gas_used.saturating_mul(trades), fee_wei }
    }

    /// Adds what `other` has counted.
    pub const fn merge(&mut self, other: &Self) {
        self.gas_used = self.gas_used.saturating_add(other.gas_used);
        self.fee_wei = self.fee_wei.saturating_add(other.fee_wei);
    }
}

/// What became of the deliveries to a key's webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookCounts {
    /// Events and replays that were delivered.
    pub delivered: u64,
    /// Those that were given up.
    pub failed: u64,
    /// Those that are still to be delivered.
    pub pending: u64,
    /// Attempts that did not deliver, the last ones included.
    pub failed_attempts: u64,
}

impl WebhookCounts {
    /// Adds what `other` has counted.
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
    fn an_hour_begins_at_its_first_millisecond() {
        assert_eq!(hour_of(NOON), NOON);
        assert_eq!(hour_of(NOON.plus_ms(HOUR_MS - 1)), NOON);
        assert_eq!(hour_of(NOON.plus_ms(-1)), NOON.plus_ms(-HOUR_MS));
        assert_eq!(hour_of(Timestamp::from_ms(-1)).ms(), -HOUR_MS);
    }

    #[test]
    fn a_window_holds_the_hours_that_began_after_its_start() {
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
    fn a_refusal_at_the_door_is_counted_by_its_code_and_has_no_latency() {
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
    fn the_parts_of_a_transaction_are_rounded_up_and_cover_it() {
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
