//! A token bucket that holds one minute's requests and refills evenly.

use super::{RateDecision, WINDOW_MS};
use crate::Timestamp;

/// A token bucket that stores the used part in units of 1/60,000 of a request. A request uses
/// 60,000 units, and at a limit of `n` per minute each millisecond restores `n` units. The
/// arithmetic is exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenBucket {
    taken: i64,
    /// The limit of the last allowed request, which is the refill rate.
    rate: i64,
    at_ms: i64,
}

/// The units of one request.
const REQUEST: i64 = WINDOW_MS;

impl TokenBucket {
    /// Takes one request out at `now`, or rejects it if less than one of `limit` is left.
    pub fn take(&mut self, limit: u32, now: Timestamp) -> RateDecision {
        self.move_to(now);
        let capacity = i64::from(limit) * REQUEST;
        // Compare with this request's limit: keys of one user share the bucket, but may have
        // different limits.
        let allowed = self.taken + REQUEST <= capacity;
        if allowed {
            self.taken += REQUEST;
            self.rate = i64::from(limit);
        }
        RateDecision {
            allowed,
            limit,
            remaining: u32::try_from((capacity - self.taken).max(0) / REQUEST).unwrap_or(limit),
            reset_at: self.idle_at(),
            retry_after_ms: if allowed { 0 } else { self.retry_after_ms(capacity) },
        }
    }

    /// Returns the time at which the bucket is full.
    pub fn idle_at(&self) -> Timestamp {
        Timestamp::from_ms(self.at_ms + self.refilled_in_ms(self.taken))
    }

    fn move_to(&mut self, now: Timestamp) {
        let elapsed_ms = now.ms().saturating_sub(self.at_ms).max(0);
        // A minute restores everything, because at most one minute's requests can be used.
        self.taken = (self.taken - elapsed_ms.min(WINDOW_MS) * self.rate).max(0);
        // A clock that goes back counts as standing still.
        self.at_ms = self.at_ms.max(now.ms());
    }

    fn retry_after_ms(&self, capacity: i64) -> i64 {
        let missing = self.taken + REQUEST - capacity;
        // A limit of 0 never refills; report one full window as the retry time.
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

    fn said(verdict: RateDecision) -> (bool, u32, i64, i64) {
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
    fn a_rate_that_does_not_divide_evenly_does_not_drift() {
        let mut bucket = TokenBucket::default();
        for _ in 0..7 {
            assert!(bucket.take(7, at(0)).allowed);
        }
        // Seven per minute is one per 8,571.43 ms: exactly 700 more are allowed in 100 minutes.
        let allowed = (1..=6_000_000).filter(|ms| bucket.take(7, at(*ms)).allowed).count();
        assert_eq!(allowed, 700);
    }

    #[test]
    fn it_never_holds_more_than_one_minute_of_requests() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(2, at(0)).allowed);
        assert_eq!(said(bucket.take(2, at(86_400_000))), (true, 1, 86_430_000, 0));
    }

    #[test]
    fn a_clock_set_back_counts_as_stopped() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(1, at(10_000)).allowed);
        assert_eq!(said(bucket.take(1, at(0))), (false, 0, 70_000, 60_000));
        assert!(bucket.take(1, at(70_000)).allowed);
    }

    #[test]
    fn keys_with_different_limits_share_one_usage_count() {
        let mut bucket = TokenBucket::default();
        for _ in 0..600 {
            assert!(bucket.take(600, at(0)).allowed);
        }
        // 541 of the 600 must be restored, at ten per second.
        assert_eq!(said(bucket.take(60, at(0))), (false, 0, 60_000, 54_100));
        assert!(!bucket.take(60, at(54_099)).allowed);
        assert!(bucket.take(60, at(54_100)).allowed);
        assert_eq!(said(bucket.take(0, at(54_100))), (false, 0, 114_100, 60_000));
    }
}
