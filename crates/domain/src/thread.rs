//! The status of a thread. It is computed from the thread's window and the current time, and never
//! stored.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::time::Timestamp;

/// The status of a thread. Its window includes the start and excludes the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatus {
    /// Within its window.
    Active,
    /// Before its start.
    Upcoming,
    /// At or after its end.
    Closed,
}

impl ThreadStatus {
    pub const ALL: [Self; 3] = [Self::Active, Self::Upcoming, Self::Closed];

    /// Returns the status at `now`. A thread without a start has already started, and one without
    /// an end never closes. If the end is before the start, the end decides.
    pub fn at(now: Timestamp, start: Option<Timestamp>, end: Option<Timestamp>) -> Self {
        if end.is_some_and(|end| now >= end) {
            Self::Closed
        } else if start.is_some_and(|start| now < start) {
            Self::Upcoming
        } else {
            Self::Active
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Upcoming => "upcoming",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for ThreadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a status of a thread")]
pub struct ParseThreadStatusError;

impl FromStr for ThreadStatus {
    type Err = ParseThreadStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ParseThreadStatusError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now_ms: i64, start_ms: Option<i64>, end_ms: Option<i64>) -> ThreadStatus {
        let instant = Timestamp::from_ms;
        ThreadStatus::at(instant(now_ms), start_ms.map(instant), end_ms.map(instant))
    }

    #[test]
    fn a_thread_is_active_from_its_start_until_its_end() {
        use ThreadStatus::{Active, Closed, Upcoming};
        for (now_ms, status) in [
            (i64::MIN, Upcoming),
            (99, Upcoming),
            (100, Active),
            (199, Active),
            (200, Closed),
            (i64::MAX, Closed),
        ] {
            assert_eq!(at(now_ms, Some(100), Some(200)), status, "{now_ms}");
        }
    }

    #[test]
    fn a_thread_without_a_start_has_started() {
        assert_eq!(at(i64::MIN, None, Some(200)), ThreadStatus::Active);
        assert_eq!(at(199, None, Some(200)), ThreadStatus::Active);
        assert_eq!(at(200, None, Some(200)), ThreadStatus::Closed);
    }

    #[test]
    fn a_thread_without_an_end_never_closes() {
        assert_eq!(at(99, Some(100), None), ThreadStatus::Upcoming);
        assert_eq!(at(100, Some(100), None), ThreadStatus::Active);
        assert_eq!(at(i64::MAX, Some(100), None), ThreadStatus::Active);
        assert_eq!(at(0, None, None), ThreadStatus::Active);
    }

    #[test]
    fn only_the_documented_statuses_are_parsed() {
        for status in ThreadStatus::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for word in ["", "all", "ACTIVE", "open"] {
            assert_eq!(word.parse::<ThreadStatus>(), Err(ParseThreadStatusError), "{word}");
        }
    }
}
