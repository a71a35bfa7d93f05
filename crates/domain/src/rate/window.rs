//! An exact sliding window of 60 seconds, based on a log of request times.

use std::collections::VecDeque;

use super::{RateDecision, WINDOW_MS};
use crate::Timestamp;

/// The requests of the last 60 seconds. A request at `t` leaves the window at `t + 60 s`, so that
/// no 60 seconds, wherever they start, contain more requests than the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Times and the number of requests at each, oldest first.
    log: VecDeque<(i64, u32)>,
    /// The sum of the numbers in `log`.
    total: u32,
    /// The latest time seen. A clock that goes back counts as standing still.
    latest_ms: i64,
}

impl SlidingWindow {
    /// Records a request at `now`, or rejects it if the last 60 seconds already contain `limit`
    /// requests.
    pub fn take(&mut self, limit: u32, now: Timestamp) -> RateDecision {
        self.move_to(now);
        let allowed = self.total < limit;
        if allowed {
            match self.log.back_mut() {
                // Requests of the same millisecond share an entry, which bounds the log.
                Some((at, count)) if *at == self.latest_ms => *count += 1,
                _ => self.log.push_back((self.latest_ms, 1)),
            }
            self.total += 1;
        }
        self.verdict(allowed, limit)
    }

    /// Returns the verdict for a request at `now` without recording it.
    pub fn peek(&mut self, limit: u32, now: Timestamp) -> RateDecision {
        self.move_to(now);
        self.verdict(self.total < limit, limit)
    }

    /// Returns the number of requests in the last 60 seconds.
    pub fn used(&mut self, now: Timestamp) -> u32 {
        self.move_to(now);
        self.total
    }

    /// Returns the time at which the window is empty.
    pub fn idle_at(&self) -> Timestamp {
        let last = self.log.back().map_or(self.latest_ms, |(at, _)| at + WINDOW_MS);
        Timestamp::from_ms(last)
    }

    fn move_to(&mut self, now: Timestamp) {
        self.latest_ms = self.latest_ms.max(now.ms());
        while let Some((at, count)) = self.log.front()
            && *at <= self.latest_ms - WINDOW_MS
        {
            self.total -= count;
            self.log.pop_front();
        }
    }

    fn verdict(&self, allowed: bool, limit: u32) -> RateDecision {
        RateDecision {
            allowed,
            limit,
            remaining: limit.saturating_sub(self.total),
            reset_at: self.idle_at(),
            retry_after_ms: if allowed { 0 } else { self.retry_after_ms(limit) },
        }
    }

    /// Returns the time until enough of the oldest requests have left the window. A limit of 0
    /// never allows a request; report one full window.
    fn retry_after_ms(&self, limit: u32) -> i64 {
        let mut left = self.total;
        for (at, count) in &self.log {
            left -= count;
            if left < limit {
                return at + WINDOW_MS - self.latest_ms;
            }
        }
        WINDOW_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(1_800_000_000_000 + ms)
    }

    /// Returns whether the request was allowed, the remaining requests, the reset time and the
    /// retry time.
    fn said(verdict: RateDecision) -> (bool, u32, i64, i64) {
        (verdict.allowed, verdict.remaining, verdict.reset_at.since_ms(at(0)), verdict.retry_after_ms)
    }

    #[test]
    fn a_full_window_frees_a_request_after_60_seconds() {
        let mut window = SlidingWindow::default();
        assert_eq!(said(window.take(3, at(0))), (true, 2, 60_000, 0));
        assert_eq!(said(window.take(3, at(0))), (true, 1, 60_000, 0));
        assert_eq!(said(window.take(3, at(500))), (true, 0, 60_500, 0));
        assert_eq!(said(window.take(3, at(1_000))), (false, 0, 60_500, 59_000));
        assert_eq!(said(window.take(3, at(59_999))), (false, 0, 60_500, 1));
        // Both requests of the first instant leave the window together.
        assert_eq!(said(window.take(3, at(60_000))), (true, 1, 120_000, 0));
        assert_eq!(said(window.take(3, at(60_499))), (true, 0, 120_499, 0));
        assert_eq!(said(window.take(3, at(60_499))), (false, 0, 120_499, 1));
    }

    #[test]
    fn rejected_requests_do_not_prolong_the_wait() {
        let mut window = SlidingWindow::default();
        assert!(window.take(1, at(0)).allowed);
        for ms in 1..60_000 {
            assert!(!window.take(1, at(ms)).allowed);
        }
        assert!(window.take(1, at(60_000)).allowed);
    }

    #[test]
    fn a_clock_set_back_counts_as_stopped() {
        let mut window = SlidingWindow::default();
        assert!(window.take(2, at(10_000)).allowed);
        assert_eq!(said(window.take(2, at(0))), (true, 0, 70_000, 0));
        assert_eq!(said(window.take(2, at(-100_000))), (false, 0, 70_000, 60_000));
    }

    #[test]
    fn keys_with_different_limits_count_the_same_requests() {
        let mut window = SlidingWindow::default();
        for ms in 0..100 {
            assert!(window.take(100, at(ms)).allowed);
        }
        // Of the hundred requests, all but 59 must leave: the 41st was at 40.
        assert_eq!(said(window.take(60, at(100))), (false, 0, 60_099, 59_940));
        assert!(window.take(60, at(60_040)).allowed);
        assert_eq!(said(window.take(0, at(60_040))), (false, 0, 120_040, 60_000));
    }

    #[test]
    fn peeking_counts_nothing() {
        let mut window = SlidingWindow::default();
        assert_eq!(said(window.peek(1, at(5))), (true, 1, 5, 0));
        assert!(window.take(1, at(5)).allowed);
        assert_eq!(said(window.peek(1, at(6))), (false, 0, 60_005, 59_999));
    }
}
