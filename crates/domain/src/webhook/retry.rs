//! When an event is tried again: ten attempts over about 24 hours, each wait several times as long as the one before it.
//!
//! The waits between ten attempts add up to 22 h 43 min; with all that jitter and slow answers can add, the tenth comes 20
//! to 26 hours after the first. Two rules keep an event that has lost time, because the receiver asked for it or because it
//! stood in a queue, within about 24 hours all the same: an attempt that fails after a day is the last, whatever its number,
//! and no attempt is planned for later than 26 hours. Every due attempt is made, however late: only the next one is judged.
//! So an event that waited for days behind another still gets one attempt of its own.

use super::outcome::{Class, Outcome};
use crate::Timestamp;
use crate::time::{DAY_MS, MINUTE_MS};

/// The most attempts of an event, and again of each of its replays.
pub const MAX_ATTEMPTS: u32 = 10;
/// The wait behind each attempt but the last.
const WAITS_MS: [i64; MAX_ATTEMPTS as usize - 1] = [
    5_000,
    30_000,
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    30 * MINUTE_MS,
    60 * MINUTE_MS,
    180 * MINUTE_MS,
    360 * MINUTE_MS,
    720 * MINUTE_MS,
];
/// A wait is longer or shorter by at most the tenth part, so that events that failed together do not come back together.
const JITTER_PART: i64 = 10;
/// An attempt that fails when the event is this old is the last one; no receiver can put an attempt off for longer.
const CUT_MS: i64 = DAY_MS;
/// No attempt is planned for when the event is older than this: room for the slowest course of all ten attempts.
const LATEST_MS: i64 = CUT_MS + 120 * MINUTE_MS;

/// What was already done for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// How many attempts were made, the one that is judged included.
    pub attempts: u32,
    /// When the event happened, or when the replay of it was asked for: 24 hours count from here.
    pub began_at: Timestamp,
}

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver has the event.
    Delivered,
    /// There is to be another attempt.
    Retry {
        /// Not before this instant.
        at: Timestamp,
    },
    /// There is to be no other attempt by itself.
    Failed,
}

/// What follows from an attempt that ended at `now`. `jitter` is a random number, a new one for each attempt.
pub fn judge(outcome: Outcome, standing: Standing, now: Timestamp, jitter: u64) -> Verdict {
    match outcome.class() {
        Class::Delivered => Verdict::Delivered,
        Class::Terminal => Verdict::Failed,
        Class::Transient if now.since_ms(standing.began_at) >= CUT_MS => Verdict::Failed,
        Class::Transient => match wait_ms(standing.attempts, jitter) {
            Some(wait_ms) => {
                let planned = now.plus_ms(wait_ms).min(standing.began_at.plus_ms(LATEST_MS));
                let asked = outcome.retry_after_ms().map_or(planned, |ms| now.plus_ms(ms));
                Verdict::Retry { at: planned.max(asked.min(standing.began_at.plus_ms(CUT_MS))) }
            }
            None => Verdict::Failed,
        },
    }
}

/// The wait behind this many attempts; none behind the last.
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

    const HOUR_MS: i64 = 3_600_000;
    const START: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    const fn answered(status: u16, retry_after_ms: Option<i64>) -> Outcome {
        Outcome::Answered { status, retry_after_ms }
    }

    const fn standing(attempts: u32) -> Standing {
        Standing { attempts, began_at: START }
    }

    /// In how many milliseconds the next attempt is, `after_ms` after the beginning.
    fn next_ms(outcome: Outcome, attempts: u32, after_ms: i64, jitter: u64) -> Option<i64> {
        let now = START.plus_ms(after_ms);
        match judge(outcome, standing(attempts), now, jitter) {
            Verdict::Retry { at } => Some(at.since_ms(now)),
            Verdict::Delivered | Verdict::Failed => None,
        }
    }

    #[test]
    fn each_wait_has_its_length_and_a_tenth_of_play_either_way() {
        let waits_s = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200];
        for (attempts, wait_s) in (1u32..).zip(waits_s) {
            let play_ms = wait_s * 100;
            let wait = |jitter| next_ms(Outcome::TimedOut, attempts, 0, jitter);
            assert_eq!(wait(0), Some(wait_s * 1_000 - play_ms), "{attempts}");
            assert_eq!(wait(play_ms as u64), Some(wait_s * 1_000), "{attempts}");
            assert_eq!(wait(2 * play_ms as u64), Some(wait_s * 1_000 + play_ms), "{attempts}");
            assert_eq!(wait(2 * play_ms as u64 + 1), wait(0), "{attempts}");
        }
    }

    #[test]
    fn the_tenth_failure_is_the_last() {
        assert!(next_ms(Outcome::TimedOut, 9, 11 * HOUR_MS, 0).is_some());
        for attempts in [10, 11, u32::MAX] {
            assert_eq!(
                judge(Outcome::TimedOut, standing(attempts), START.plus_ms(1), 0),
                Verdict::Failed,
                "{attempts}"
            );
        }
    }

    #[test]
    fn what_can_change_is_tried_again_and_what_cannot_is_not() {
        for outcome in [
            answered(301, None),
            answered(408, None),
            answered(429, None),
            answered(500, None),
            answered(101, None),
            Outcome::TimedOut,
            Outcome::Unreachable(NetworkFault::Dns),
        ] {
            assert_eq!(next_ms(outcome, 1, 10, 500), Some(5_000), "{outcome:?}");
        }
        for outcome in [answered(400, None), answered(410, Some(1_000)), Outcome::TargetRefused] {
            assert_eq!(judge(outcome, standing(1), START, 0), Verdict::Failed, "{outcome:?}");
        }
        // The receiver has it, however late and after however many attempts.
        for (attempts, after_ms) in [(1, 0), (10, 25 * HOUR_MS), (1, 1_000 * HOUR_MS)] {
            let verdict = judge(answered(204, None), standing(attempts), START.plus_ms(after_ms), 0);
            assert_eq!(verdict, Verdict::Delivered);
        }
    }

    #[test]
    fn an_attempt_that_fails_after_a_day_is_the_last() {
        assert_eq!(next_ms(Outcome::TimedOut, 1, 24 * HOUR_MS - 1, 500), Some(5_000));
        assert_eq!(next_ms(Outcome::TimedOut, 1, 24 * HOUR_MS, 500), None);
        assert_eq!(next_ms(Outcome::TimedOut, 1, 1_000 * HOUR_MS, 500), None);
        assert_eq!(next_ms(answered(503, Some(60_000)), 1, 24 * HOUR_MS, 500), None);
    }

    #[test]
    fn no_attempt_is_planned_for_later_than_26_hours() {
        // Nine attempts at the pace of the schedule leave room for the longest last wait.
        let slowest_ms = 43_200_000 + 4_320_000;
        assert_eq!(next_ms(Outcome::TimedOut, 9, 12 * HOUR_MS, 8_640_000), Some(slowest_ms));
        // An event that lost 15 hours before its ninth attempt gets its tenth at 26 hours.
        assert_eq!(next_ms(Outcome::TimedOut, 9, 20 * HOUR_MS, 8_640_000), Some(6 * HOUR_MS));
        assert_eq!(next_ms(Outcome::TimedOut, 9, 24 * HOUR_MS - 1, 0), Some(2 * HOUR_MS + 1));
    }

    #[test]
    fn a_longer_retry_after_is_honoured_up_to_the_age_of_24_hours() {
        let next = |retry_after_ms, after_ms| next_ms(answered(429, Some(retry_after_ms)), 1, after_ms, 500);
        assert_eq!(next(4_999, 0), Some(5_000));
        assert_eq!(next(5_001, 0), Some(5_001));
        assert_eq!(next(23 * HOUR_MS, HOUR_MS), Some(23 * HOUR_MS));
        assert_eq!(next(23 * HOUR_MS + 1, HOUR_MS), Some(23 * HOUR_MS));
        assert_eq!(next(i64::MAX, HOUR_MS), Some(23 * HOUR_MS));
        assert_eq!(next(-5, 0), Some(5_000));
        // Close to the cut the schedule's own wait is the longer one.
        assert_eq!(next(HOUR_MS, 24 * HOUR_MS - 1), Some(5_000));
        // A redirect or an outage may name a time too.
        assert_eq!(next_ms(answered(503, Some(60_000)), 1, 0, 0), Some(60_000));
        assert_eq!(next_ms(answered(302, Some(60_000)), 1, 0, 0), Some(60_000));
    }

    fn any_outcome() -> impl Strategy<Value = Outcome> {
        let asked = proptest::option::of(-1_000i64..200_000_000);
        prop_oneof![
            (0u16..1_000, asked)
                .prop_map(|(status, retry_after_ms)| Outcome::Answered { status, retry_after_ms }),
            Just(Outcome::TimedOut),
            Just(Outcome::TargetRefused),
            prop::sample::select(&NetworkFault::ALL[..]).prop_map(Outcome::Unreachable),
        ]
    }

    proptest! {
        #[test]
        fn a_next_attempt_is_never_early_never_after_26_hours_and_never_an_eleventh(
            outcome in any_outcome(), attempts in 1u32..13, age_ms in -100_000i64..200_000_000, jitter: u64,
        ) {
            let now = START.plus_ms(age_ms);
            match judge(outcome, standing(attempts), now, jitter) {
                Verdict::Delivered => prop_assert_eq!(outcome.class(), Class::Delivered),
                Verdict::Retry { at } => {
                    prop_assert_eq!(outcome.class(), Class::Transient);
                    prop_assert!(attempts < MAX_ATTEMPTS && age_ms < CUT_MS);
                    prop_assert!(at.since_ms(START) <= 26 * HOUR_MS);
                    prop_assert!(at.since_ms(now) >= 4_500);
                    let asked_ms = outcome.retry_after_ms().unwrap_or(0);
                    prop_assert!(at >= now.plus_ms(asked_ms).min(START.plus_ms(24 * HOUR_MS)));
                }
                Verdict::Failed => prop_assert!(
                    outcome.class() == Class::Terminal || attempts >= MAX_ATTEMPTS || age_ms >= CUT_MS
                ),
            }
        }
    }
}
