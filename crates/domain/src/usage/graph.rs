//! Usage over time, for graphs.

use super::hour_of;
use crate::Timestamp;
use crate::money::Usdc;
use crate::time::{DAY_MS, HOUR_MS};

/// The time that a graph covers. It ends with the current hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphRange {
    /// 24 hours.
    Day,
    /// 7 days, in steps of 6 hours.
    Week,
    /// 30 days.
    Month,
}

/// The usage within an hour, or within a step of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsagePoint {
    /// The start of the hour or step.
    pub start: Timestamp,
    /// Requests that reached their route.
    pub requests: u64,
    /// Requests that were rejected before.
    pub rejected: u64,
    /// Trades that completed.
    pub trades: u64,
    /// The USDC that these trades moved, fees included.
    pub volume: Usdc,
}

impl UsagePoint {
    pub const fn at(start: Timestamp) -> Self {
        Self { start, requests: 0, rejected: 0, trades: 0, volume: Usdc::ZERO }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.rejected = self.rejected.saturating_add(other.rejected);
        self.trades = self.trades.saturating_add(other.trades);
        // Saturates, because a report must not fail after an overflow.
        let volume = self.volume.checked_add(other.volume);
        self.volume = volume.unwrap_or(Usdc::from_atomic(i64::MAX as u64));
    }
}

impl GraphRange {
    /// Returns the number of steps and the length of one.
    const fn steps(self) -> (i64, i64) {
        match self {
            Self::Day => (24, HOUR_MS),
            Self::Week => (28, 6 * HOUR_MS),
            Self::Month => (30, DAY_MS),
        }
    }

    /// Returns the start of the first step of a graph that ends now.
    pub const fn start(self, now: Timestamp) -> Timestamp {
        let (count, length) = self.steps();
        hour_of(now).plus_ms(HOUR_MS - count * length)
    }

    /// Sums hours into the steps of a graph that ends now, oldest first. Ignores hours outside it.
    pub fn sum(self, now: Timestamp, hours: impl IntoIterator<Item = UsagePoint>) -> Vec<UsagePoint> {
        let (count, length) = self.steps();
        let first = self.start(now);
        let mut points: Vec<_> =
            (0..count).map(|step| UsagePoint::at(first.plus_ms(step * length))).collect();
        for hour in hours {
            let step = usize::try_from(hour.start.since_ms(first).div_euclid(length));
            if let Some(point) = step.ok().and_then(|step| points.get_mut(step)) {
                point.merge(&hour);
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000 + 1_234_567);

    fn hour(ago: i64) -> UsagePoint {
        let start = hour_of(NOW).plus_ms(-ago * HOUR_MS);
        UsagePoint {
            requests: 2,
            rejected: 1,
            trades: 1,
            volume: Usdc::from_whole(3),
            ..UsagePoint::at(start)
        }
    }

    #[test]
    fn a_graph_ends_with_the_current_hour_and_counts_no_older_one() {
        for (range, hours) in [(GraphRange::Day, 24), (GraphRange::Week, 168), (GraphRange::Month, 720)] {
            let points = range.sum(NOW, [hour(0), hour(0), hour(hours - 1), hour(hours), hour(-1)]);
            assert_eq!((points[0].start, points[0].requests), (range.start(NOW), 2), "{range:?}");
            let last = points.last().unwrap();
            assert_eq!((last.requests, last.rejected, last.trades), (4, 2, 2), "{range:?}");
            assert_eq!(last.volume, Usdc::from_whole(6));
            assert_eq!(points.iter().map(|point| point.requests).sum::<u64>(), 6, "{range:?}");
        }
    }
}
