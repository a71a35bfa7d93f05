//! A bucket that holds a minute's requests and refills evenly.

use super::{Verdict, WINDOW_MS};
use crate::Timestamp;

/// What has been taken out of the bucket and is not refilled yet, counted in 1/60,000 of a request: a request takes 60,000
/// of them, and at a limit of `n` a minute each millisecond brings `n` of them back. Nothing is ever rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenBucket {
    taken: i64,
    /// The limit of the key that took last: what is taken is refilled at that rate.
    rate: i64,
    at_ms: i64,
}

/// A request's part of the bucket.
const REQUEST: i64 = WINDOW_MS;

impl TokenBucket {
    /// Takes a request out at `now`, or refuses it where less than one is left of `limit`.
    pub fn take(&mut self, limit: u32, now: Timestamp) -> Verdict {
        self.move_to(now);
        let capacity = i64::from(limit) * REQUEST;
        let allowed = self.taken + REQUEST <= capacity;
        if allowed {
            self.taken += REQUEST;
            self.rate = i64::from(limit);
        }
        Verdict {
            allowed,
            limit,
            remaining: u32::try_from((capacity - self.taken).max(0) / REQUEST).unwrap_or(limit),
            reset_at: self.idle_at(),
            retry_after_ms: if allowed { 0 } else { self.retry_after_ms(capacity) },
        }
    }

    /// From when on the bucket is full.
    pub fn idle_at(&self) -> Timestamp {
        Timestamp::from_ms(self.at_ms + self.refilled_in_ms(self.taken))
    }

    fn move_to(&mut self, now: Timestamp) {
        let elapsed_ms = now.ms().saturating_sub(self.at_ms).max(0);
        // No more is ever taken than the rate brings back in a minute.
        self.taken = (self.taken - elapsed_ms.min(WINDOW_MS) * self.rate).max(0);
        self.at_ms = self.at_ms.max(now.ms());
    }

    fn retry_after_ms(&self, capacity: i64) -> i64 {
        let missing = self.taken + REQUEST - capacity;
        // Where nothing is allowed at all, no refill helps: a window, for want of an end.
        if missing > self.taken { WINDOW_MS } else { self.refilled_in_ms(missing) }
    }

    fn refilled_in_ms(&self, part: i64) -> i64 {
        if self.rate == 0 { 0 } else { part.unsigned_abs().div_ceil(self.rate.unsigned_abs()).cast_signed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(1_800_000_000_000 + ms)
    }

    fn said(verdict: Verdict) -> (bool, u32, i64, i64) {
        (verdict.allowed, verdict.remaining, verdict.reset_at.since_ms(at(0)), verdict.retry_after_ms)
    }

    #[test]
    fn a_full_bucket_is_emptied_at_once_and_refills_evenly() {
        let mut bucket = TokenBucket::default();
        assert_eq!(said(bucket.take(60, at(0))), (true, 59, 1_000, 0));
        for _ in 1..60 {
            assert!(bucket.take(60, at(0)).allowed);
        }
        assert_eq!(said(bucket.take(60, at(0))), (false, 0, 60_000, 1_000));
        assert_eq!(said(bucket.take(60, at(999))), (false, 0, 60_000, 1));
        assert_eq!(said(bucket.take(60, at(1_000))), (true, 0, 61_000, 0));
        assert_eq!(said(bucket.take(60, at(3_500))), (true, 1, 62_000, 0));
    }

    #[test]
    fn a_rate_that_divides_nothing_evenly_does_not_drift() {
        let mut bucket = TokenBucket::default();
        for _ in 0..7 {
            assert!(bucket.take(7, at(0)).allowed);
        }
        // Seven a minute are one each 8,571.43 ms: after a hundred minutes exactly 700 more were allowed.
        let allowed = (1..=6_000_000).filter(|ms| bucket.take(7, at(*ms)).allowed).count();
        assert_eq!(allowed, 700);
    }

    #[test]
    fn it_never_holds_more_than_a_minutes_requests() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(2, at(0)).allowed);
        assert_eq!(said(bucket.take(2, at(86_400_000))), (true, 1, 86_430_000, 0));
    }

    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(1, at(10_000)).allowed);
        assert_eq!(said(bucket.take(1, at(0))), (false, 0, 70_000, 60_000));
        assert!(bucket.take(1, at(70_000)).allowed);
    }

    #[test]
    fn keys_with_different_limits_share_what_was_taken() {
        let mut bucket = TokenBucket::default();
        for _ in 0..600 {
            assert!(bucket.take(600, at(0)).allowed);
        }
        // 541 of the 600 must be back, at ten a second.
        assert_eq!(said(bucket.take(60, at(0))), (false, 0, 60_000, 54_100));
        assert!(!bucket.take(60, at(54_099)).allowed);
        assert!(bucket.take(60, at(54_100)).allowed);
        assert_eq!(said(bucket.take(0, at(54_100))), (false, 0, 114_100, 60_000));
    }
}
