//! The retry schedule of events: ten attempts over about 24 hours, with increasing waits.
//!
//! The waits between ten attempts add up to 22 h 43 min. With the maximum jitter and slow
//! responses, the tenth attempt is 20 to 26 hours after the first. An event may lose time in a
//! queue or because the receiver asks for a pause. Two rules limit this: an attempt that fails
//! after 24 hours is the last one, and no attempt is scheduled more than 26 hours after the event.
//!
//! Each due attempt is made, however late: the rules apply only to the next one. An event that
//! waited for days behind another one therefore still gets one attempt.

use super::outcome::{AttemptOutcome, Class};
use crate::Timestamp;
use crate::time::{DAY_MS, HOUR_MS, MINUTE_MS};

/// The maximum number of attempts of an event, and of each of its replays.
pub const MAX_ATTEMPTS: u32 = 10;
/// The wait after each attempt except the last.
const WAITS_MS: [i64; MAX_ATTEMPTS as usize - 1] = [
    5_000,
    30_000,
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    30 * MINUTE_MS,
    HOUR_MS,
    3 * HOUR_MS,
    6 * HOUR_MS,
    12 * HOUR_MS,
];
/// The jitter: a wait varies by up to one tenth in both directions, so that events that failed
/// together are not retried together.
const JITTER_PART: i64 = 10;
/// An attempt that fails when the event is this old is the last. A receiver cannot postpone an
/// attempt beyond this age.
const CUT_MS: i64 = DAY_MS;
/// No attempt is scheduled beyond this age of the event. Leaves room for the slowest schedule of
/// ten attempts.
const LATEST_MS: i64 = CUT_MS + 2 * HOUR_MS;

/// The progress of an event's delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// The number of attempts so far, including the one being decided.
    pub attempts: u32,
    /// The time of the event, or of the request to replay it. The age of the event counts from
    /// here.
    pub began_at: Timestamp,
}

/// The consequence of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// The receiver has the event.
    Delivered,
    /// Another attempt follows.
    Retry {
        /// The earliest time of the next attempt.
        at: Timestamp,
    },
    /// No further attempt is made automatically.
    Failed,
}

/// Decides what follows from an attempt that ended at `now`. `jitter` must be a new random number
/// for each attempt.
pub fn decide_retry(
    outcome: AttemptOutcome,
    progress: DeliveryProgress,
    now: Timestamp,
    jitter: u64,
) -> RetryDecision {
    match outcome.class() {
        Class::Delivered => RetryDecision::Delivered,
        Class::Terminal => RetryDecision::Failed,
        Class::Transient if now.since_ms(progress.began_at) >= CUT_MS => RetryDecision::Failed,
        Class::Transient => match wait_ms(progress.attempts, jitter) {
            Some(wait_ms) => {
                let planned = now.plus_ms(wait_ms).min(progress.began_at.plus_ms(LATEST_MS));
                // A receiver can postpone the attempt, but neither advance it nor move it beyond
                // the cut.
                let asked = outcome.retry_after_ms().map_or(planned, |ms| now.plus_ms(ms));
                RetryDecision::Retry { at: planned.max(asked.min(progress.began_at.plus_ms(CUT_MS))) }
            }
            None => RetryDecision::Failed,
        },
    }
}

/// Returns the wait after this many attempts; `None` after the last.
fn wait_ms(attempts: u32, jitter: u64) -> Option<i64> {
    let wait_ms = *WAITS_MS.get(usize::try_from(attempts).ok()?.saturating_sub(1))?;
    let most_ms = wait_ms / JITTER_PART;
    let off_ms = jitter % (2 * most_ms.unsigned_abs() + 1);
    Some(wait_ms - most_ms + off_ms.cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::webhook::NetworkFault;

    const START: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    const fn answered(status: u16, retry_after_ms: Option<i64>) -> AttemptOutcome {
        AttemptOutcome::Answered { status, retry_after_ms }
    }

    const fn progress(attempts: u32) -> DeliveryProgress {
        DeliveryProgress { attempts, began_at: START }
    }

    /// Returns the milliseconds to the next attempt. The decided attempt ends `after_ms` after the
    /// event.
    fn next_ms(outcome: AttemptOutcome, attempts: u32, after_ms: i64, jitter: u64) -> Option<i64> {
        let now = START.plus_ms(after_ms);
        match decide_retry(outcome, progress(attempts), now, jitter) {
            RetryDecision::Retry { at } => Some(at.since_ms(now)),
            RetryDecision::Delivered | RetryDecision::Failed => None,
        }
    }

    #[test]
    fn each_wait_has_its_length_and_a_tenth_of_jitter_either_way() {
        let waits_s = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200];
        for (attempts, wait_s) in (1u32..).zip(waits_s) {
            let play_ms = wait_s * 100;
            let wait = |jitter| next_ms(AttemptOutcome::TimedOut, attempts, 0, jitter);
            assert_eq!(wait(0), Some(wait_s * 1_000 - play_ms), "{attempts}");
            assert_eq!(wait(play_ms as u64), Some(wait_s * 1_000), "{attempts}");
            assert_eq!(wait(2 * play_ms as u64), Some(wait_s * 1_000 + play_ms), "{attempts}");
            assert_eq!(wait(2 * play_ms as u64 + 1), wait(0), "{attempts}");
        }
    }

    #[test]
    fn the_tenth_failure_is_the_last() {
        assert!(next_ms(AttemptOutcome::TimedOut, 9, 11 * HOUR_MS, 0).is_some());
        for attempts in [10, 11, u32::MAX] {
            assert_eq!(
                decide_retry(AttemptOutcome::TimedOut, progress(attempts), START.plus_ms(1), 0),
                RetryDecision::Failed,
                "{attempts}"
            );
        }
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        for outcome in [
            answered(301, None),
            answered(408, None),
            answered(429, None),
            answered(500, None),
            answered(101, None),
            AttemptOutcome::TimedOut,
            AttemptOutcome::Unreachable(NetworkFault::Dns),
        ] {
            assert_eq!(next_ms(outcome, 1, 10, 500), Some(5_000), "{outcome:?}");
        }
        for outcome in [answered(400, None), answered(410, Some(1_000)), AttemptOutcome::TargetRefused] {
            assert_eq!(decide_retry(outcome, progress(1), START, 0), RetryDecision::Failed, "{outcome:?}");
        }
        // A success counts however late it is.
        for (attempts, after_ms) in [(1, 0), (10, 25 * HOUR_MS), (1, 1_000 * HOUR_MS)] {
            let decision = decide_retry(answered(204, None), progress(attempts), START.plus_ms(after_ms), 0);
            assert_eq!(decision, RetryDecision::Delivered);
        }
    }

    #[test]
    fn an_attempt_that_fails_after_a_day_is_the_last() {
        assert_eq!(next_ms(AttemptOutcome::TimedOut, 1, 24 * HOUR_MS - 1, 500), Some(5_000));
        assert_eq!(next_ms(AttemptOutcome::TimedOut, 1, 24 * HOUR_MS, 500), None);
        assert_eq!(next_ms(AttemptOutcome::TimedOut, 1, 1_000 * HOUR_MS, 500), None);
        assert_eq!(next_ms(answered(503, Some(60_000)), 1, 24 * HOUR_MS, 500), None);
    }

    #[test]
    fn no_attempt_is_planned_for_later_than_26_hours() {
        // Nine attempts at the schedule's pace leave room for the longest last wait.
        let slowest_ms = 43_200_000 + 4_320_000;
        assert_eq!(next_ms(AttemptOutcome::TimedOut, 9, 12 * HOUR_MS, 8_640_000), Some(slowest_ms));
        // An event that lost 15 hours before its ninth attempt gets its tenth at 26 hours.
        assert_eq!(next_ms(AttemptOutcome::TimedOut, 9, 20 * HOUR_MS, 8_640_000), Some(6 * HOUR_MS));
        assert_eq!(next_ms(AttemptOutcome::TimedOut, 9, 24 * HOUR_MS - 1, 0), Some(2 * HOUR_MS + 1));
    }

    #[test]
    fn a_longer_retry_after_is_honored_up_to_the_age_of_24_hours() {
        let next = |retry_after_ms, after_ms| next_ms(answered(429, Some(retry_after_ms)), 1, after_ms, 500);
        assert_eq!(next(4_999, 0), Some(5_000));
        assert_eq!(next(5_001, 0), Some(5_001));
        assert_eq!(next(23 * HOUR_MS, HOUR_MS), Some(23 * HOUR_MS));
        assert_eq!(next(23 * HOUR_MS + 1, HOUR_MS), Some(23 * HOUR_MS));
        assert_eq!(next(i64::MAX, HOUR_MS), Some(23 * HOUR_MS));
        assert_eq!(next(-5, 0), Some(5_000));
        // Close to the cut, the schedule's own wait is longer.
        assert_eq!(next(HOUR_MS, 24 * HOUR_MS - 1), Some(5_000));
        // Redirects and outages may also send `Retry-After`.
        assert_eq!(next_ms(answered(503, Some(60_000)), 1, 0, 0), Some(60_000));
        assert_eq!(next_ms(answered(302, Some(60_000)), 1, 0, 0), Some(60_000));
    }

    fn any_outcome() -> impl Strategy<Value = AttemptOutcome> {
        let asked = proptest::option::of(-1_000i64..200_000_000);
        prop_oneof![
            (0u16..1_000, asked)
                .prop_map(|(status, retry_after_ms)| AttemptOutcome::Answered { status, retry_after_ms }),
            Just(AttemptOutcome::TimedOut),
            Just(AttemptOutcome::TargetRefused),
            prop::sample::select(&NetworkFault::ALL[..]).prop_map(AttemptOutcome::Unreachable),
        ]
    }

    proptest! {
        #[test]
        fn retries_stay_within_26_hours_and_ten_attempts(
            outcome in any_outcome(), attempts in 1u32..13, age_ms in -100_000i64..200_000_000, jitter: u64,
        ) {
            let now = START.plus_ms(age_ms);
            match decide_retry(outcome, progress(attempts), now, jitter) {
                RetryDecision::Delivered => prop_assert_eq!(outcome.class(), Class::Delivered),
                RetryDecision::Retry { at } => {
                    prop_assert_eq!(outcome.class(), Class::Transient);
                    prop_assert!(attempts < MAX_ATTEMPTS && age_ms < CUT_MS);
                    prop_assert!(at.since_ms(START) <= 26 * HOUR_MS);
                    prop_assert!(at.since_ms(now) >= 4_500);
                    let asked_ms = outcome.retry_after_ms().unwrap_or(0);
                    prop_assert!(at >= now.plus_ms(asked_ms).min(START.plus_ms(24 * HOUR_MS)));
                }
                RetryDecision::Failed => prop_assert!(
                    outcome.class() == Class::Terminal || attempts >= MAX_ATTEMPTS || age_ms >= CUT_MS
                ),
            }
        }
    }
}
