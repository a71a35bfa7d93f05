//! Time in whole milliseconds since the Unix epoch, read from an injected [`Clock`].

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Serialize};

/// A time in milliseconds since the Unix epoch. Serialized as ISO 8601 in UTC with milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// One minute, in milliseconds.
pub const MINUTE_MS: i64 = 60_000;
/// One hour, in milliseconds.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// One day, in milliseconds.
pub const DAY_MS: i64 = 24 * HOUR_MS;

impl Timestamp {
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    pub const fn from_s(s: u64) -> Self {
        Self(s as i64 * 1_000)
    }

    pub const fn ms(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down; 0 before the epoch.
    pub const fn s(self) -> u64 {
        if self.0 < 0 { 0 } else { (self.0 / 1_000) as u64 }
    }

    /// Returns the time `ms` milliseconds later, or earlier if `ms` is negative.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the time in the format of HTTP headers, such as `Wed, 29 Apr 2026 12:00:00 GMT`,
    /// rounded down to the second.
    pub fn http_date(self) -> String {
        use jiff::fmt::rfc2822::DateTimePrinter;
        let at = jiff::Timestamp::from_second(self.0.div_euclid(1_000)).unwrap_or_default();
        // Fails only for years of more than four digits.
        DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap_or_default()
    }

    /// Returns the milliseconds from `earlier` to `self`; negative if `earlier` is later.
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            // The time is outside of the range of years that jiff supports.
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 8601 instant such as 2026-04-29T12:00:00Z")]
pub struct ParseTimestampError;

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at: jiff::Timestamp = text.parse().map_err(|_| ParseTimestampError)?;
        Ok(Self(at.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A source of the current time.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// The machine's clock, with an offset that is 0 unless the test clock is enabled.
#[derive(Debug, Default)]
pub struct SystemClock {
    offset_ms: AtomicI64,
}

impl SystemClock {
    /// Moves this clock forward by `ms` milliseconds.
    pub fn advance(&self, ms: i64) {
        self.offset_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let ms = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        Timestamp(ms.saturating_add(self.offset_ms.load(Ordering::SeqCst)))
    }
}

/// A clock that moves only by [`Self::advance`].
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
}

impl ManualClock {
    pub const fn new(start: Timestamp) -> Self {
        Self { now_ms: AtomicI64::new(start.0) }
    }

    /// Moves the clock forward by `ms` milliseconds.
    pub fn advance(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_as_iso_8601_with_milliseconds() {
        let at = Timestamp::from_ms(1_777_464_000_123);
        assert_eq!(at.to_string(), "2026-04-29T12:00:00.123Z");
        assert_eq!(at.to_string().parse(), Ok(at));
    }

    #[test]
    fn an_http_date_has_the_fixed_form() {
        assert_eq!(Timestamp::from_ms(1_777_464_000_999).http_date(), "Wed, 29 Apr 2026 12:00:00 GMT");
        assert_eq!(Timestamp::from_ms(1_775_001_600_000).http_date(), "Wed, 01 Apr 2026 00:00:00 GMT");
    }

    #[test]
    fn text_that_is_not_a_timestamp_is_rejected() {
        assert_eq!("tomorrow".parse::<Timestamp>(), Err(ParseTimestampError));
    }
}
