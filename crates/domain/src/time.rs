//! Time as the service knows it: whole milliseconds since the Unix epoch, read from a [`Clock`] that is passed in.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Serialize};

/// An instant, in milliseconds since the Unix epoch. Written in JSON as ISO 8601 in UTC with milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// One minute, in milliseconds.
pub const MINUTE_MS: i64 = 60_000;
/// One day, in milliseconds.
pub const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

impl Timestamp {
    /// The instant `ms` milliseconds after the epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// The instant `s` seconds after the epoch.
    pub const fn from_s(s: u64) -> Self {
        Self(s as i64 * 1_000)
    }

    /// Milliseconds since the epoch.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn s(self) -> u64 {
        if self.0 < 0 { 0 } else { (self.0 / 1_000) as u64 }
    }

    /// This instant moved by `ms` milliseconds, which may be negative.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The instant as HTTP's headers write it, such as `Wed, 29 Apr 2026 12:00:00 GMT`, rounded down to the second.
    pub fn http_date(self) -> String {
        use jiff::fmt::rfc2822::DateTimePrinter;
        let at = jiff::Timestamp::from_second(self.0.div_euclid(1_000)).unwrap_or_default();
        // Only years of more than four digits cannot be written.
        DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap_or_default()
    }

    /// Milliseconds from `earlier` to this instant; negative where `earlier` is later.
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an instant.
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

/// Where the present comes from.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, moved by an offset that is zero unless a test clock is asked for.
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

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `start`.
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
    fn an_instant_is_written_as_iso_8601_with_milliseconds_and_read_back() {
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
    fn text_that_is_no_instant_is_refused() {
        assert_eq!("tomorrow".parse::<Timestamp>(), Err(ParseTimestampError));
    }
}
