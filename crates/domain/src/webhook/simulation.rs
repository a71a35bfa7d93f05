//! Simulates the delivery rules on a manual clock with seeded random numbers: a million events, and
//! the breaker compared with a slow but obviously correct model.

use super::*;
use crate::Timestamp;
use crate::time::HOUR_MS;

const START_MS: i64 = 1_777_464_000_000;
const EVENTS: usize = 1_000_000;
/// The number of keys. Each has its own queue, receiver and breaker.
const KEYS: usize = 1_000;

/// A seeded random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }
}

/// The course of one event's delivery.
struct Course {
    /// The time of each attempt, relative to the first.
    attempts_ms: Vec<i64>,
    /// The end of the last attempt.
    ended: Timestamp,
    decision: RetryDecision,
}

/// Delivers one event that happened at `began_at`, starting at `now`. The receiver fails `failing`
/// of 1,000 attempts.
fn deliver(
    dice: &mut Dice,
    breaker: &mut Breaker,
    failing: u64,
    began_at: Timestamp,
    now: Timestamp,
) -> Course {
    let (mut at, mut attempts_ms, mut first) = (now, Vec::with_capacity(10), None);
    loop {
        at = due(at, breaker.admits(at));
        assert!(!matches!(breaker.admits(at), Admission::Wait { .. }), "one wait is enough");
        attempts_ms.push(at.since_ms(*first.get_or_insert(at)));
        let outcome = match dice.below(1_000) {
            roll if roll >= failing => AttemptOutcome::Answered { status: 200, retry_after_ms: None },
            roll if roll % 3 == 0 => AttemptOutcome::TimedOut,
            roll if roll % 3 == 1 => AttemptOutcome::Unreachable(NetworkFault::Connect),
            _ => AttemptOutcome::Answered { status: 503, retry_after_ms: None },
        };
        let lasts_ms =
            if outcome == AttemptOutcome::TimedOut { 10_000 } else { dice.below(10_000).cast_signed() };
        let ended = at.plus_ms(lasts_ms);
        *breaker = std::mem::take(breaker).after(!outcome.is_endpoint_failure(), ended);
        let progress = DeliveryProgress { attempts: attempts_ms.len() as u32, began_at };
        match decide_retry(outcome, progress, ended, dice.roll()) {
            RetryDecision::Retry { at: next } => at = next,
            decision => return Course { attempts_ms, ended, decision },
        }
    }
}

#[test]
fn a_million_events_end_within_ten_attempts_and_26_hours() {
    let mut dice = Dice(0x5eed_0001);
    let mut breakers = vec![Breaker::default(); KEYS];
    let mut clocks_ms = vec![START_MS; KEYS];
    let (mut by_attempts, mut delivered, mut old) = ([0u32; 11], 0, 0);
    let mut schedules = Vec::with_capacity(EVENTS);
    for event in 0..EVENTS {
        let key = event % KEYS;
        // From receivers that always succeed to receivers that always fail.
        let failing = (key as u64 / 10) * 1_010 / 100;
        let now = Timestamp::from_ms(clocks_ms[key]);
        // One of ten events waited in a queue, for up to 50 hours.
        let age_ms = if dice.below(10) == 0 { dice.below(180_000_000).cast_signed() } else { 0 };
        let began_at = now.plus_ms(-age_ms);
        let course = deliver(&mut dice, &mut breakers[key], failing, began_at, now);
        clocks_ms[key] = course.ended.ms() + 1 + dice.below(20_000).cast_signed();
        let attempts = course.attempts_ms.len();
        by_attempts[attempts] += 1;
        delivered += u32::from(course.decision == RetryDecision::Delivered);
        old += u32::from(age_ms >= 24 * HOUR_MS);
        let last_ms = *course.attempts_ms.last().unwrap();
        if course.decision == RetryDecision::Failed {
            let given_up_at_ms = course.ended.since_ms(began_at);
            assert!(attempts == 10 || given_up_at_ms >= 24 * HOUR_MS, "event {event}");
            assert!(age_ms > 0 || attempts == 10, "event {event}");
            assert!(age_ms < 24 * HOUR_MS || attempts == 1, "event {event}");
        }
        if attempts == 10 {
            // An event that lost time in its queue finishes earlier.
            let earliest_ms = if age_ms == 0 { 20 * HOUR_MS } else { 0 };
            assert!((earliest_ms..=26 * HOUR_MS - age_ms).contains(&last_ms), "event {event}: {last_ms}");
            schedules.push(course.attempts_ms);
        }
        let gaps = course_gaps(schedules.last().filter(|_| attempts == 10 && age_ms == 0));
        assert!(gaps, "event {event}: a wait is shorter than the one before it");
    }
    // All cases occurred.
    assert!(by_attempts[0] == 0 && by_attempts[1..].iter().all(|count| *count > 2_000), "{by_attempts:?}");
    assert!(delivered > 100_000 && old > 1_000 && schedules.len() > 50_000);
    let all = schedules.len();
    schedules.sort_unstable();
    schedules.dedup();
    assert_eq!(schedules.len(), all, "two events were tried at the same times");
}

/// Returns true if each wait of a course of ten attempts is longer than the previous one, or if
/// there is no such course.
fn course_gaps(attempts_ms: Option<&Vec<i64>>) -> bool {
    let Some(attempts_ms) = attempts_ms else { return true };
    let gap = |at: usize| attempts_ms[at + 1] - attempts_ms[at];
    // A breaker's pause and slow responses can make the first wait longer than the second.
    (2..8).all(|at| gap(at) < gap(at + 1))
}

/// The breaker's rules, computed over a list of all attempts.
#[derive(Default)]
struct Model {
    attempts: Vec<(i64, bool)>,
    open_until_ms: Option<i64>,
}

impl Model {
    fn after(&mut self, succeeded: bool, now_ms: i64) {
        match self.open_until_ms {
            Some(until_ms) if now_ms < until_ms => return,
            Some(_) if succeeded => return *self = Self::default(),
            Some(_) => return self.open_until_ms = Some(now_ms + 30_000),
            None => self.attempts.push((now_ms, !succeeded)),
        }
        let row = self.attempts.iter().rev().take_while(|(_, failed)| *failed).count();
        let recent: Vec<_> = self.attempts.iter().filter(|(at_ms, _)| now_ms - at_ms < 60_000).collect();
        let failed = recent.iter().filter(|(_, failed)| *failed).count();
        if row >= 5 || (recent.len() >= 5 && failed * 2 > recent.len()) {
            self.open_until_ms = Some(now_ms + 30_000);
        }
    }

    fn admits(&self, now_ms: i64) -> Admission {
        match self.open_until_ms {
            None => Admission::Send,
            Some(until_ms) if now_ms < until_ms => Admission::Wait { until: Timestamp::from_ms(until_ms) },
            Some(_) => Admission::Probe,
        }
    }
}

/// Runs the breaker and the model side by side. Returns how often the breaker opened and closed.
/// Each step passes through the text form.
fn walk(seed: u64, failing: u64, pauses_ms: &[u64]) -> [u32; 2] {
    let (mut dice, mut breaker, mut model) = (Dice(seed << 20 | 1), Breaker::default(), Model::default());
    let (mut now_ms, mut turns) = (START_MS, [0, 0]);
    for step in 0..3_000 {
        now_ms += dice.below(pauses_ms[dice.0 as usize % pauses_ms.len()]).cast_signed();
        let now = Timestamp::from_ms(now_ms);
        assert_eq!(breaker.admits(now), model.admits(now_ms), "seed {seed} step {step}");
        let (succeeded, was_open) = (dice.below(100) >= failing, breaker.is_open());
        breaker = breaker.after(succeeded, now);
        model.after(succeeded, now_ms);
        assert_eq!(breaker.admits(now), model.admits(now_ms), "seed {seed} step {step}");
        turns[usize::from(was_open)] += u32::from(was_open != breaker.is_open());
        assert_eq!(breaker.to_string().parse(), Ok(breaker.clone()), "seed {seed} step {step}");
    }
    turns
}

#[test]
fn the_breaker_equals_a_model_with_a_list_of_all_attempts() {
    for (seed, failing) in [(1, 5), (2, 30), (3, 45), (4, 55), (5, 80), (6, 100)] {
        // The attempts of one key: up to 30 per minute, with long pauses.
        let turns = walk(seed, failing, &[4_000, 8_000, 20_000, 200_000]);
        match failing {
            100 => assert_eq!(turns, [1, 0]),
            30.. => assert!(turns.iter().all(|count| *count > 20), "{turns:?}"),
            _ => {}
        }
    }
}

#[test]
fn the_bounded_memory_decides_like_a_list_of_all_attempts() {
    // Hundreds of attempts per minute with fewer than 32 failures: 64 outcomes give the same
    // decision as all of them.
    for seed in 1..20 {
        walk(seed, 6, &[10, 300]);
    }
}

#[test]
fn the_memory_of_a_breaker_does_not_grow() {
    let (mut dice, mut breaker, mut longest) = (Dice(0x5eed_0002), Breaker::default(), 0);
    for ms in 0..20_000 {
        breaker = breaker.after(dice.below(100) >= 20, Timestamp::from_ms(START_MS + ms));
        longest = longest.max(breaker.to_string().len());
    }
    // The window was full: 64 outcomes of at least a full stop, a letter and a digit.
    assert!((64 * 3..=300).contains(&longest), "{longest}");
}
