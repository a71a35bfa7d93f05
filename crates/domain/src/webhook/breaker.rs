//! The circuit breaker of one endpoint. It pauses deliveries to an endpoint that fails repeatedly,
//! and then tests it with a single attempt.
//!
//! The breaker opens for 30 seconds after five consecutive failures, or if the last 60 seconds have
//! at least five attempts and more than half of them failed. Afterwards one attempt, the probe,
//! decides: if it succeeds, the breaker closes and forgets its history, otherwise it opens again. A
//! clock that goes back counts as standing still.
//!
//! The window holds at most the last 64 outcomes. Among them it is exact to the millisecond, and
//! the omitted ones cannot change the verdict while at most 32 attempts per minute fail. A key's
//! events are sent one after another and wait seconds after each failure, so that only about 14 of
//! them fail per minute.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use crate::Timestamp;
use crate::time::MINUTE_MS;

/// The number of consecutive failures that opens the breaker.
const CONSECUTIVE: u8 = 5;
/// The period over which the share of failures is computed.
const WINDOW_MS: i64 = MINUTE_MS;
/// The minimum number of attempts for which the share of failures counts.
const LEAST_ATTEMPTS: usize = 5;
/// The maximum number of outcomes stored.
const REMEMBERED: usize = 64;
/// The time for which the breaker stays open.
const OPEN_MS: i64 = 30_000;

/// The breaker's answer to an attempt that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Make the attempt.
    Send,
    /// Make it: its outcome closes the breaker or opens it again.
    Probe,
    /// Make no attempt before this time.
    Wait {
        /// The time to ask again.
        until: Timestamp,
    },
}

/// Returns the time at which an attempt due at `due_at` can be made. Waiting for the breaker does
/// not count as an attempt.
pub fn due(due_at: Timestamp, admission: Admission) -> Timestamp {
    match admission {
        Admission::Send | Admission::Probe => due_at,
        Admission::Wait { until } => due_at.max(until),
    }
}

/// The outcome of an attempt within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attempt {
    at: Timestamp,
    failed: bool,
}

/// A circuit breaker. It is stored as text with its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker(State);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Closed {
        /// The number of consecutive failures up to now.
        failures: u8,
        /// The outcomes of the last minute, oldest first.
        window: VecDeque<Attempt>,
    },
    /// No attempt is made before `until`. The next one is the probe.
    Open { until: Timestamp },
}

impl Default for Breaker {
    fn default() -> Self {
        Self(State::Closed { failures: 0, window: VecDeque::new() })
    }
}

impl Breaker {
    /// Returns whether an attempt may be made at `now`.
    pub fn admits(&self, now: Timestamp) -> Admission {
        match self.0 {
            State::Closed { .. } => Admission::Send,
            State::Open { until } if now < until => Admission::Wait { until },
            State::Open { .. } => Admission::Probe,
        }
    }

    /// Returns the breaker after an attempt ended at `now`.
    ///
    /// An attempt that ends while the breaker is open started before it opened and has no new
    /// information. An attempt that ends later is the probe, because no attempt takes as long as
    /// the breaker stays open.
    #[must_use]
    pub fn after(self, succeeded: bool, now: Timestamp) -> Self {
        match self.0 {
            State::Closed { failures, window } => after_attempt(failures, window, succeeded, now),
            State::Open { until } if now < until => Self(State::Open { until }),
            State::Open { .. } if succeeded => Self::default(),
            State::Open { .. } => Self::open(now),
        }
    }

    /// Returns true if attempts are paused or only the probe is admitted.
    pub const fn is_open(&self) -> bool {
        !matches!(self.0, State::Closed { .. })
    }

    const fn open(now: Timestamp) -> Self {
        Self(State::Open { until: now.plus_ms(OPEN_MS) })
    }
}

fn after_attempt(failures: u8, mut window: VecDeque<Attempt>, succeeded: bool, now: Timestamp) -> Breaker {
    // A clock that goes back would otherwise break the order of the window.
    let now = window.back().map_or(now, |last| last.at.max(now));
    window.push_back(Attempt { at: now, failed: !succeeded });
    let outside = |attempt: &Attempt| now.since_ms(attempt.at) >= WINDOW_MS;
    while window.len() > REMEMBERED || window.front().is_some_and(outside) {
        window.pop_front();
    }
    let failures = if succeeded { 0 } else { failures.saturating_add(1) };
    let failed = window.iter().filter(|attempt| attempt.failed).count();
    if failures >= CONSECUTIVE || (window.len() >= LEAST_ATTEMPTS && 2 * failed > window.len()) {
        return Breaker::open(now);
    }
    Breaker(State::Closed { failures, window })
}

/// An empty text for a new breaker. Otherwise words joined by full stops: `closed`, the number of
/// consecutive failures, and one word per attempt in the window: `s` or `f` and the milliseconds
/// since the previous attempt (for the first one, since the epoch). Or `open`, and the time at which
/// that state ends.
impl fmt::Display for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Closed { failures: 0, window } if window.is_empty() => Ok(()),
            State::Closed { failures, window } => {
                write!(f, "closed.{failures}")?;
                let mut before_ms = 0;
                for attempt in window {
                    let word = if attempt.failed { 'f' } else { 's' };
                    write!(f, ".{word}{}", attempt.at.ms() - before_ms)?;
                    before_ms = attempt.at.ms();
                }
                Ok(())
            }
            State::Open { until } => write!(f, "open.{}", until.ms()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a breaker")]
pub struct ParseBreakerError;

impl FromStr for Breaker {
    type Err = ParseBreakerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() { Ok(Self::default()) } else { parse(text).map(Self).ok_or(ParseBreakerError) }
    }
}

fn parse(text: &str) -> Option<State> {
    let mut words = text.split('.');
    let (state, number) = (words.next()?, words.next()?);
    match state {
        "closed" => {
            // A closed breaker never has this many failures: the text is corrupt.
            let failures = u8::try_from(whole(number)?).ok().filter(|count| *count < CONSECUTIVE)?;
            Some(State::Closed { failures, window: window(words)? })
        }
        "open" if words.next().is_none() => Some(State::Open { until: Timestamp::from_ms(whole(number)?) }),
        _ => None,
    }
}

fn window<'a>(words: impl Iterator<Item = &'a str>) -> Option<VecDeque<Attempt>> {
    let (mut window, mut at_ms) = (VecDeque::new(), 0i64);
    for word in words {
        let (failed, since_ms) = match word.split_at_checked(1)? {
            ("s", since_ms) => (false, since_ms),
            ("f", since_ms) => (true, since_ms),
            _ => return None,
        };
        at_ms = at_ms.checked_add(whole(since_ms)?)?;
        window.push_back(Attempt { at: Timestamp::from_ms(at_ms), failed });
    }
    (window.len() <= REMEMBERED).then_some(window)
}

/// Parses a whole number without a sign.
fn whole(text: &str) -> Option<i64> {
    // `i64::from_str` also accepts a sign.
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: i64 = 1_777_464_000_000;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(START_MS + ms)
    }

    /// Returns a breaker after attempts with these end times and results.
    fn after(attempts: impl IntoIterator<Item = (i64, bool)>) -> Breaker {
        attempts
            .into_iter()
            .fold(Breaker::default(), |breaker, (ms, succeeded)| breaker.after(succeeded, at(ms)))
    }

    /// Five consecutive failures, the last one at 4 ms.
    fn opened() -> Breaker {
        after((0..5).map(|ms| (ms, false)))
    }

    const fn wait(ms: i64) -> Admission {
        Admission::Wait { until: at(ms) }
    }

    #[test]
    fn the_fifth_failure_in_a_row_opens_it_at_any_pace() {
        const DAY: i64 = 86_400_000;
        let four = after((0..4).map(|day| (day * DAY, false)));
        assert_eq!(four.admits(at(3 * DAY)), Admission::Send);
        assert_eq!(four.clone().after(false, at(4 * DAY)).admits(at(4 * DAY)), wait(4 * DAY + 30_000));
        // A success restarts the count.
        let row = after(
            [false, false, false, false, true, false, false, false, false]
                .iter()
                .zip(0..)
                .map(|(succeeded, day)| (day * DAY, *succeeded)),
        );
        assert_eq!(row.admits(at(8 * DAY)), Admission::Send);
        assert!(row.after(false, at(9 * DAY)).is_open());
    }

    #[test]
    fn failures_above_half_of_five_or_more_attempts_open_it() {
        // Alternating failures and successes: never two consecutive failures.
        let half = after((0..6).map(|ms| (ms, ms % 2 == 0)));
        assert!(!half.is_open());
        assert!(half.after(false, at(6)).is_open());
        // Four attempts are too few. Of five, three failures are enough, whatever the fifth result.
        let four = || after([(0, false), (1, true), (2, false), (3, false)]);
        assert!(!four().is_open());
        assert!(four().after(true, at(4)).is_open());
        // Two of five are less than half.
        assert!(!after([(0, true), (1, false), (2, true), (3, false), (4, true)]).is_open());
        // The same holds for many attempts: 32 of 64 are half, one more is too many.
        let many = after((0..64).map(|ms| (ms, ms % 2 == 0)));
        assert!(!many.is_open());
        assert!(many.after(false, at(64)).is_open());
    }

    #[test]
    fn an_attempt_counts_for_exactly_sixty_seconds() {
        // A failure at 0 and two of four later: three of five while it is in the window.
        let four = || after([(0, false), (1, true), (2, true), (3, false)]);
        assert!(four().after(false, at(59_999)).is_open());
        assert!(!four().after(false, at(60_000)).is_open());
    }

    #[test]
    fn it_stays_open_for_30_seconds_and_then_admits_one_probe() {
        let open = opened();
        assert_eq!(open.admits(at(4)), wait(30_004));
        assert_eq!(open.admits(at(30_003)), wait(30_004));
        assert_eq!(open.admits(at(30_004)), Admission::Probe);
    }

    #[test]
    fn a_successful_probe_closes_it_and_clears_its_memory() {
        assert_eq!(opened().after(true, at(30_004)), Breaker::default());
    }

    #[test]
    fn a_failed_probe_opens_it_for_another_30_seconds() {
        let again = opened().after(false, at(40_000));
        assert_eq!(again.admits(at(40_000)), wait(70_000));
        assert_eq!(again.admits(at(69_999)), wait(70_000));
        assert_eq!(again.admits(at(70_000)), Admission::Probe);
    }

    #[test]
    fn attempts_started_before_it_opened_change_nothing() {
        for succeeded in [true, false] {
            assert_eq!(opened().after(succeeded, at(30_003)), opened());
        }
    }

    #[test]
    fn a_pause_delays_an_attempt_and_never_advances_it() {
        assert_eq!(due(at(10), Admission::Send), at(10));
        assert_eq!(due(at(10), Admission::Probe), at(10));
        assert_eq!(due(at(10), wait(30_000)), at(30_000));
        assert_eq!(due(at(40_000), wait(30_000)), at(40_000));
    }

    #[test]
    fn a_clock_set_back_counts_as_stopped() {
        let breaker = after([(100_000, false), (0, true), (0, true)]);
        assert_eq!(breaker.to_string(), format!("closed.0.f{}.s0.s0", START_MS + 100_000));
    }

    #[test]
    fn a_breaker_round_trips_through_text() {
        for (breaker, text) in [
            (Breaker::default(), ""),
            (after([(0, true), (7, false), (7, false)]), "closed.2.s1777464000000.f7.f0"),
            (opened(), "open.1777464030004"),
            (after((0..5_000).map(|ms| (ms, true))), &closed_after_successes()),
        ] {
            assert_eq!(breaker.to_string(), text);
            assert_eq!(text.parse(), Ok(breaker));
        }
    }

    /// 64 successes, one millisecond apart, the last at 4,999 ms.
    fn closed_after_successes() -> String {
        format!("closed.0.s{}{}", START_MS + 4_936, ".s1".repeat(63))
    }

    #[test]
    fn other_text_is_not_a_breaker() {
        let long = format!("closed.0{}", ".s1".repeat(65));
        for text in [
            " ",
            "closed",
            "closed.",
            "closed.5",
            "closed.-1",
            "closed.0.",
            "closed.0.x1",
            "closed.0.s",
            "closed.0.s-1",
            "closed.0.s+1",
            "closed.0.\u{e9}1",
            "closed.0.s9223372036854775807.s1",
            &long,
            "open",
            "open.",
            "open.x",
            "open.1.2",
            "probing.1777464060004",
            "half-open.1",
        ] {
            assert_eq!(text.parse::<Breaker>(), Err(ParseBreakerError), "{text}");
        }
    }
}
