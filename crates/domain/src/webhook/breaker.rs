//! The circuit breaker of one endpoint: one that fails again and again is left alone for a while, then asked with one attempt.
//!
//! It opens after five failures in a row, or once more than half of the attempts of the last 60 seconds failed and these are
//! at least five; it stays open for 30 seconds. Then one attempt, the probe, decides: success closes it and forgets what
//! was, failure opens it again. A clock that goes back is taken to stand still.
//!
//! The window holds the last 64 outcomes at the most. Within them it is exact to the millisecond; and as long as no more than
//! 32 attempts a minute fail, what it leaves out cannot change the verdict. The events of one key wait for one another, and
//! after a failure for seconds, so that some 14 of them fail in a minute.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use crate::Timestamp;
use crate::time::MINUTE_MS;

/// So many failures in a row open the breaker.
const CONSECUTIVE: u8 = 5;
/// What counts for the share of failures.
const WINDOW_MS: i64 = MINUTE_MS;
/// A share of fewer attempts says nothing.
const LEAST_ATTEMPTS: usize = 5;
/// How many outcomes are remembered.
const REMEMBERED: usize = 64;
/// How long an open breaker keeps everything back.
const OPEN_MS: i64 = 30_000;
/// A probe that nothing was heard of for this long, which is longer than an attempt can take, was lost with its sender.
const PROBE_LOST_MS: i64 = 30_000;

/// What the breaker says to an attempt that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Make it.
    Send,
    /// Make it, and no other until its outcome is known.
    Probe,
    /// Not before this instant.
    Wait {
        /// When to ask again.
        until: Timestamp,
    },
}

/// When an attempt can be made that is due at `due_at`, seen from what the breaker says now. Waiting for the breaker is no
/// attempt, so a pause uses none up.
pub fn due(due_at: Timestamp, admission: Admission) -> Timestamp {
    match admission {
        Admission::Send | Admission::Probe => due_at,
        Admission::Wait { until } => due_at.max(until),
    }
}

/// How an attempt ended, as the window remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attempt {
    at: Timestamp,
    failed: bool,
}

/// A breaker: a value that is stored with its endpoint, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker(State);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Attempts are made.
    Closed {
        /// How many failed in a row, last.
        failures: u8,
        /// Those of the last minute, oldest first.
        window: VecDeque<Attempt>,
    },
    /// None is made until then; the next one is the probe.
    Open { until: Timestamp },
    /// The probe is under way, or lost if it is not heard of until then.
    Probing { until: Timestamp },
}

impl Default for Breaker {
    fn default() -> Self {
        Self(State::Closed { failures: 0, window: VecDeque::new() })
    }
}

impl Breaker {
    /// What an attempt may do that is due at `now`.
    pub fn admits(&self, now: Timestamp) -> Admission {
        match self.0 {
            State::Closed { .. } => Admission::Send,
            State::Open { until } | State::Probing { until } if now < until => Admission::Wait { until },
            State::Open { .. } | State::Probing { .. } => Admission::Probe,
        }
    }

    /// The breaker once the probe that it admitted is under way: nothing else is admitted until its outcome is known. Needed
    /// where attempts to one endpoint overlap; a sender that makes one at a time may leave it out.
    #[must_use]
    pub fn probing(self, now: Timestamp) -> Self {
        match self.admits(now) {
            Admission::Probe => Self(State::Probing { until: now.plus_ms(PROBE_LOST_MS) }),
            Admission::Send | Admission::Wait { .. } => self,
        }
    }

    /// The breaker after an attempt ended at `now`.
    ///
    /// What ends while the breaker is open was begun before it opened and says nothing new. What ends afterwards is the
    /// probe: no attempt takes as long as the breaker stays open.
    #[must_use]
    pub fn after(self, succeeded: bool, now: Timestamp) -> Self {
        match self.0 {
            State::Closed { failures, window } => after_attempt(failures, window, succeeded, now),
            State::Open { until } if now < until => Self(State::Open { until }),
            State::Open { .. } | State::Probing { .. } if succeeded => Self::default(),
            State::Open { .. } | State::Probing { .. } => Self::open(now),
        }
    }

    /// Whether attempts are being kept back, or only the probe is let through.
    pub const fn is_open(&self) -> bool {
        !matches!(self.0, State::Closed { .. })
    }

    const fn open(now: Timestamp) -> Self {
        Self(State::Open { until: now.plus_ms(OPEN_MS) })
    }
}

fn after_attempt(failures: u8, mut window: VecDeque<Attempt>, succeeded: bool, now: Timestamp) -> Breaker {
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

/// Nothing where nothing is known, else words with full stops between them: `closed`, the failures in a row, then each attempt of the window as `s` or `f` and the
/// milliseconds since the one before it, the first since the epoch; or `open` and `probing` with the instant of their end.
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
            State::Probing { until } => write!(f, "probing.{}", until.ms()),
        }
    }
}

/// The text is no breaker.
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
            let failures = u8::try_from(whole(number)?).ok().filter(|count| *count < CONSECUTIVE)?;
            Some(State::Closed { failures, window: window(words)? })
        }
        "open" if words.next().is_none() => Some(State::Open { until: Timestamp::from_ms(whole(number)?) }),
        "probing" if words.next().is_none() => {
            Some(State::Probing { until: Timestamp::from_ms(whole(number)?) })
        }
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

/// A whole number without a sign.
fn whole(text: &str) -> Option<i64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: i64 = 1_777_464_000_000;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(START_MS + ms)
    }

    /// A breaker after these attempts: when each ended, and whether well.
    fn after(attempts: impl IntoIterator<Item = (i64, bool)>) -> Breaker {
        attempts
            .into_iter()
            .fold(Breaker::default(), |breaker, (ms, succeeded)| breaker.after(succeeded, at(ms)))
    }

    /// Five failures in a row, the last at 4.
    fn opened() -> Breaker {
        after((0..5).map(|ms| (ms, false)))
    }

    const fn wait(ms: i64) -> Admission {
        Admission::Wait { until: at(ms) }
    }

    #[test]
    fn four_failures_in_a_row_are_borne_and_the_fifth_opens_it_however_long_they_take() {
        const DAY: i64 = 86_400_000;
        let four = after((0..4).map(|day| (day * DAY, false)));
        assert_eq!(four.admits(at(3 * DAY)), Admission::Send);
        assert_eq!(four.clone().after(false, at(4 * DAY)).admits(at(4 * DAY)), wait(4 * DAY + 30_000));
        // One that goes well begins the row anew.
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
    fn more_than_half_of_at_least_five_attempts_opens_it_and_exactly_half_does_not() {
        // Failures and successes in turn: never two in a row.
        let half = after((0..6).map(|ms| (ms, ms % 2 == 0)));
        assert!(!half.is_open());
        assert!(half.after(false, at(6)).is_open());
        // Three of four are too few to tell, three of five are enough, whatever the fifth was.
        let four = || after([(0, false), (1, true), (2, false), (3, false)]);
        assert!(!four().is_open());
        assert!(four().after(true, at(4)).is_open());
        // Two of five are less than half.
        assert!(!after([(0, true), (1, false), (2, true), (3, false), (4, true)]).is_open());
        // Of many attempts too: 32 of 64 are half, the 33rd is more.
        let many = after((0..64).map(|ms| (ms, ms % 2 == 0)));
        assert!(!many.is_open());
        assert!(many.after(false, at(64)).is_open());
    }

    #[test]
    fn an_attempt_counts_for_sixty_seconds_and_not_a_millisecond_longer() {
        // A failure at 0, and two of four later: with it three of five.
        let four = || after([(0, false), (1, true), (2, true), (3, false)]);
        assert!(four().after(false, at(59_999)).is_open());
        assert!(!four().after(false, at(60_000)).is_open());
    }

    #[test]
    fn it_stays_open_for_thirty_seconds_and_then_lets_one_attempt_through() {
        let open = opened();
        assert_eq!(open.admits(at(4)), wait(30_004));
        assert_eq!(open.admits(at(30_003)), wait(30_004));
        assert_eq!(open.admits(at(30_004)), Admission::Probe);
        let probing = open.clone().probing(at(30_004));
        assert_eq!(probing.admits(at(30_004)), wait(60_004));
        assert_eq!(probing.admits(at(60_003)), wait(60_004));
        // A probe that was lost is followed by another.
        assert_eq!(probing.admits(at(60_004)), Admission::Probe);
        // Only what is admitted as a probe is one.
        assert_eq!(open.clone().probing(at(30_003)), open);
        assert_eq!(Breaker::default().probing(at(0)), Breaker::default());
    }

    #[test]
    fn a_probe_that_goes_well_closes_it_and_all_is_forgotten() {
        let open = opened();
        assert_eq!(open.clone().after(true, at(30_004)), Breaker::default());
        assert_eq!(open.probing(at(30_004)).after(true, at(30_005)), Breaker::default());
    }

    #[test]
    fn a_probe_that_fails_opens_it_for_another_thirty_seconds() {
        let open = opened();
        assert_eq!(open.clone().after(false, at(40_000)).admits(at(40_000)), wait(70_000));
        let again = open.probing(at(30_004)).after(false, at(40_000));
        assert_eq!(again.admits(at(69_999)), wait(70_000));
        assert_eq!(again.admits(at(70_000)), Admission::Probe);
    }

    #[test]
    fn what_was_begun_before_it_opened_changes_nothing() {
        for succeeded in [true, false] {
            assert_eq!(opened().after(succeeded, at(30_003)), opened());
        }
    }

    #[test]
    fn a_pause_moves_an_attempt_back_and_never_forward() {
        assert_eq!(due(at(10), Admission::Send), at(10));
        assert_eq!(due(at(10), Admission::Probe), at(10));
        assert_eq!(due(at(10), wait(30_000)), at(30_000));
        assert_eq!(due(at(40_000), wait(30_000)), at(40_000));
    }

    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let breaker = after([(100_000, false), (0, true), (0, true)]);
        assert_eq!(breaker.to_string(), format!("closed.0.f{}.s0.s0", START_MS + 100_000));
    }

    #[test]
    fn a_breaker_reads_back_from_its_text() {
        for (breaker, text) in [
            (Breaker::default(), ""),
            (after([(0, true), (7, false), (7, false)]), "closed.2.s1777464000000.f7.f0"),
            (opened(), "open.1777464030004"),
            (opened().probing(at(30_004)), "probing.1777464060004"),
            (after((0..5_000).map(|ms| (ms, true))), &closed_after_successes()),
        ] {
            assert_eq!(breaker.to_string(), text);
            assert_eq!(text.parse(), Ok(breaker));
        }
    }

    /// 64 successes a millisecond apart, the last at 4,999.
    fn closed_after_successes() -> String {
        format!("closed.0.s{}{}", START_MS + 4_936, ".s1".repeat(63))
    }

    #[test]
    fn text_of_another_form_is_no_breaker() {
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
            "probing.1.2",
            "half-open.1",
        ] {
            assert_eq!(text.parse::<Breaker>(), Err(ParseBreakerError), "{text}");
        }
    }
}
