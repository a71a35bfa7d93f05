//! Addresses that fail to authenticate again and again are shut out, each time for longer.

use std::collections::VecDeque;

use crate::Timestamp;
use crate::time::{DAY_MS, MINUTE_MS};

/// So many failures …
const FAILURES: usize = 20;
/// … within this time shut an address out …
const FAILURES_WITHIN_MS: i64 = 5 * MINUTE_MS;
/// … for this long at first, then twice as long each time …
const FIRST_MS: i64 = 15 * MINUTE_MS;
/// … but never longer than this.
const LONGEST_MS: i64 = DAY_MS;
/// After an address has not been shut out for this long, the next time is its first again.
const FORGOTTEN_AFTER_MS: i64 = DAY_MS;

/// What is known of one address. While it is shut out nothing is counted: what it tries is refused already, and a client
/// that goes on trying must be able to come out again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lockout {
    /// When it failed within the last five minutes, oldest first.
    failures: VecDeque<i64>,
    /// The end of the last time it was shut out.
    until_ms: i64,
    /// How often it was shut out in a row.
    times: u32,
    /// The latest instant that was seen: time does not go back behind it.
    latest_ms: i64,
}

impl Lockout {
    /// Until when the address is shut out, if it is.
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        (now.ms().max(self.latest_ms) < self.until_ms).then_some(Timestamp::from_ms(self.until_ms))
    }

    /// Counts a failure; until when the address is shut out, if that was the one too many.
    pub fn fail(&mut self, now: Timestamp) -> Option<Timestamp> {
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
        if self.failures.len() < FAILURES {
            return None;
        }
        self.failures.clear();
        // Seven doublings are past the longest time already.
        let length_ms = (FIRST_MS << self.times.min(7)).min(LONGEST_MS);
        self.times += 1;
        self.until_ms = self.latest_ms + length_ms;
        Some(Timestamp::from_ms(self.until_ms))
    }

    /// From when on there is nothing to know of the address.
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

    /// Fails 20 times at `ms`; for how long it is shut out then.
    fn shut_out(lockout: &mut Lockout, ms: i64) -> Option<i64> {
        for _ in 1..20 {
            assert_eq!(lockout.fail(at(ms)), None);
        }
        lockout.fail(at(ms)).map(|until| until.since_ms(at(ms)))
    }

    #[test]
    fn nineteen_failures_are_borne_and_the_twentieth_shuts_out_for_fifteen_minutes() {
        let mut lockout = Lockout::default();
        for _ in 0..19 {
            assert_eq!(lockout.fail(at(0)), None);
        }
        assert_eq!(lockout.until(at(0)), None);
        assert_eq!(lockout.fail(at(1)), Some(at(900_001)));
        assert_eq!(lockout.until(at(1)), Some(at(900_001)));
        assert_eq!(lockout.until(at(900_000)), Some(at(900_001)));
        assert_eq!(lockout.until(at(900_001)), None);
    }

    #[test]
    fn failures_that_are_five_minutes_apart_do_not_add_up() {
        let mut lockout = Lockout::default();
        for _ in 0..19 {
            assert_eq!(lockout.fail(at(0)), None);
        }
        assert_eq!(lockout.fail(at(FIVE_MINUTES_MS)), None);
        let mut lockout = Lockout::default();
        for _ in 0..19 {
            assert_eq!(lockout.fail(at(0)), None);
        }
        assert!(lockout.fail(at(FIVE_MINUTES_MS - 1)).is_some());
    }

    #[test]
    fn each_further_time_is_twice_as_long_up_to_a_day() {
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
    fn a_quiet_day_after_its_end_makes_the_next_time_the_first_again() {
        let (mut early, mut late) = (Lockout::default(), Lockout::default());
        let end_ms = shut_out(&mut early, 0).unwrap();
        shut_out(&mut late, 0).unwrap();
        assert_eq!(shut_out(&mut early, end_ms + 86_399_999), Some(1_800_000));
        assert_eq!(shut_out(&mut late, end_ms + 86_400_000), Some(900_000));
    }

    #[test]
    fn nothing_is_counted_while_shut_out() {
        let mut lockout = Lockout::default();
        let until = at(shut_out(&mut lockout, 0).unwrap());
        for ms in 0..100 {
            assert_eq!(lockout.fail(at(ms)), Some(until));
        }
        assert_eq!(lockout.fail(until), None);
    }

    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let mut lockout = Lockout::default();
        shut_out(&mut lockout, 0).unwrap();
        assert_eq!(lockout.fail(at(900_000)), None);
        assert_eq!(lockout.until(at(0)), None);
    }
}
