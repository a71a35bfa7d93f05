//! Locks out addresses that repeatedly fail to authenticate, for longer each time.

use std::collections::VecDeque;

use crate::Timestamp;
use crate::time::{DAY_MS, MINUTE_MS};

/// The number of failures that lock an address out, unless an operator chooses another.
pub const DEFAULT_FAILURES: u64 = 20;
/// The time within which the failures must occur.
const FAILURES_WITHIN_MS: i64 = 5 * MINUTE_MS;
/// The length of the first lockout. Each further one is twice as long.
const FIRST_MS: i64 = 15 * MINUTE_MS;
/// The maximum length of a lockout.
const LONGEST_MS: i64 = DAY_MS;
/// The time after a lockout after which the next one counts as the first again.
const FORGOTTEN_AFTER_MS: i64 = DAY_MS;

/// The failures and lockouts of one address. Attempts during a lockout are rejected anyway and do
/// not count, so that a client that keeps trying is not locked out forever.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lockout {
    /// The times of failures within the last five minutes, oldest first.
    failures: VecDeque<i64>,
    /// The end of the latest lockout.
    until_ms: i64,
    /// The number of consecutive lockouts.
    times: u32,
    /// The latest time seen. A clock that goes back counts as standing still.
    latest_ms: i64,
}

impl Lockout {
    /// Returns the end of the current lockout, if there is one.
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        (now.ms().max(self.latest_ms) < self.until_ms).then_some(Timestamp::from_ms(self.until_ms))
    }

    /// Records a failure, of which `failures` within five minutes lock the address out. Returns the
    /// end of the lockout if it is now locked out.
    pub fn fail(&mut self, failures: u64, now: Timestamp) -> Option<Timestamp> {
        self.latest_ms = self.latest_ms.max(now.ms());
        if self.latest_ms < self.until_ms {
            return Some(Timestamp::from_ms(self.until_ms));
        }
        if self.latest_ms - self.until_ms >= FORGOTTEN_AFTER_MS {
            self.times = 0;
        }
        while self.failures.front().is_some_and(|at| *at <= self.latest_ms - FAILURES_WITHIN_MS) {
            self.failures.pop_front();
        }
        self.failures.push_back(self.latest_ms);
        if (self.failures.len() as u64) < failures {
            return None;
        }
        self.failures.clear();
        // Seven doublings already exceed the maximum, so a larger shift is not needed.
        let length_ms = (FIRST_MS << self.times.min(7)).min(LONGEST_MS);
        self.times += 1;
        self.until_ms = self.latest_ms + length_ms;
        Some(Timestamp::from_ms(self.until_ms))
    }

    /// Returns the time after which this value equals the default and can be dropped.
    pub fn idle_at(&self) -> Timestamp {
        let failures = self.failures.back().map_or(0, |at| at + FAILURES_WITHIN_MS);
        let times = if self.times == 0 { 0 } else { self.until_ms + FORGOTTEN_AFTER_MS };
        Timestamp::from_ms(failures.max(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: i64 = 1_800_000_000_000;
    const FIVE_MINUTES_MS: i64 = 300_000;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(START_MS + ms)
    }

    /// Fails 20 times at `ms` and returns the length of the resulting lockout.
    fn shut_out(lockout: &mut Lockout, ms: i64) -> Option<i64> {
        for _ in 1..20 {
            assert_eq!(lockout.fail(DEFAULT_FAILURES, at(ms)), None);
        }
        lockout.fail(DEFAULT_FAILURES, at(ms)).map(|until| until.since_ms(at(ms)))
    }

    #[test]
    fn the_twentieth_failure_locks_out_for_15_minutes() {
        let mut lockout = Lockout::default();
        for _ in 0..19 {
            assert_eq!(lockout.fail(DEFAULT_FAILURES, at(0)), None);
        }
        assert_eq!(lockout.until(at(0)), None);
        assert_eq!(lockout.fail(DEFAULT_FAILURES, at(1)), Some(at(900_001)));
        assert_eq!(lockout.until(at(1)), Some(at(900_001)));
        assert_eq!(lockout.until(at(900_000)), Some(at(900_001)));
        assert_eq!(lockout.until(at(900_001)), None);
    }

    #[test]
    fn failures_five_minutes_apart_do_not_add_up() {
        let mut lockout = Lockout::default();
        for _ in 0..19 {
            assert_eq!(lockout.fail(DEFAULT_FAILURES, at(0)), None);
        }
        assert_eq!(lockout.fail(DEFAULT_FAILURES, at(FIVE_MINUTES_MS)), None);
        let mut lockout = Lockout::default();
        for _ in 0..19 {
            assert_eq!(lockout.fail(DEFAULT_FAILURES, at(0)), None);
        }
        assert!(lockout.fail(DEFAULT_FAILURES, at(FIVE_MINUTES_MS - 1)).is_some());
    }

    #[test]
    fn each_further_lockout_is_twice_as_long_up_to_a_day() {
        let mut lockout = Lockout::default();
        let mut now_ms = 0;
        let mut minutes = Vec::new();
        for _ in 0..9 {
            let length_ms = shut_out(&mut lockout, now_ms).unwrap();
            minutes.push(length_ms / 60_000);
            now_ms += length_ms;
        }
        assert_eq!(minutes, [15, 30, 60, 120, 240, 480, 960, 1_440, 1_440]);
    }

    #[test]
    fn a_day_without_failures_resets_the_lockout_length() {
        let (mut early, mut late) = (Lockout::default(), Lockout::default());
        let end_ms = shut_out(&mut early, 0).unwrap();
        shut_out(&mut late, 0).unwrap();
        assert_eq!(shut_out(&mut early, end_ms + 86_399_999), Some(1_800_000));
        assert_eq!(shut_out(&mut late, end_ms + 86_400_000), Some(900_000));
    }

    #[test]
    fn nothing_is_counted_during_a_lockout() {
        let mut lockout = Lockout::default();
        let until = at(shut_out(&mut lockout, 0).unwrap());
        for ms in 0..100 {
            assert_eq!(lockout.fail(DEFAULT_FAILURES, at(ms)), Some(until));
        }
        assert_eq!(lockout.fail(DEFAULT_FAILURES, until), None);
    }

    #[test]
    fn a_clock_set_back_counts_as_stopped() {
        let mut lockout = Lockout::default();
        shut_out(&mut lockout, 0).unwrap();
        assert_eq!(lockout.fail(DEFAULT_FAILURES, at(900_000)), None);
        assert_eq!(lockout.until(at(0)), None);
    }
}
