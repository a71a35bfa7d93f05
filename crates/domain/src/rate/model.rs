//! Compares the limits with models that are too slow for production but obviously correct, on
//! seeded random sequences.

use super::*;

const START_MS: i64 = 1_800_000_000_000;
const STEPS: usize = 20_000;

/// A seeded random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Returns a pause: usually none or short, sometimes long, sometimes negative.
    fn pause_ms(&mut self) -> i64 {
        let pause = match self.below(40) {
            0 => self.below(130_000),
            1..=12 => self.below(3_000),
            13..=24 => self.below(3),
            25 => return -self.below(20_000).cast_signed(),
            _ => 0,
        };
        pause.cast_signed()
    }
}

#[test]
fn the_window_equals_a_model_with_a_list_of_all_requests() {
    for seed in [1u64, 77, 4_711] {
        let (mut dice, mut window) = (Dice(seed << 20 | 1), SlidingWindow::default());
        let (mut clock_ms, mut latest_ms) = (START_MS, START_MS);
        let mut all: Vec<i64> = Vec::new();
        let limit_of = |dice: &mut Dice| [1, 5, 25, 60][dice.below(4) as usize];
        let mut limit = limit_of(&mut dice);
        for step in 0..STEPS {
            clock_ms += if step == 0 { 0 } else { dice.pause_ms() };
            latest_ms = latest_ms.max(clock_ms);
            if dice.below(500) == 0 {
                limit = limit_of(&mut dice);
            }
            all.retain(|at| latest_ms - at < 60_000);
            let allowed = all.len() < limit as usize;
            // The first time at which enough of these requests have left the window. It always is
            // the time at which one of them leaves.
            let ends = all.iter().map(|at| at + 60_000 - latest_ms);
            let retry_after_ms = ends.clone().find(|wait| {
                let left = ends.clone().filter(|end| end > wait).count();
                left < limit as usize
            });
            let retry_after_ms = if allowed { 0 } else { retry_after_ms.unwrap() };
            if allowed {
                all.push(latest_ms);
            }
            let expected = RateDecision {
                allowed,
                limit,
                remaining: limit.saturating_sub(all.len() as u32),
                reset_at: Timestamp::from_ms(all.last().map_or(latest_ms, |at| at + 60_000)),
                retry_after_ms,
            };
            let verdict = window.take(limit, Timestamp::from_ms(clock_ms));
            assert_eq!(verdict, expected, "seed {seed} step {step}");
        }
    }
}

#[test]
fn the_bucket_equals_a_model_refilled_every_millisecond() {
    for (seed, limit) in [(1u64, 1), (2, 7), (3, 60), (4, 997)] {
        let (mut dice, mut bucket) = (Dice(seed << 20 | 1), TokenBucket::default());
        let (mut clock_ms, mut latest_ms) = (START_MS, START_MS);
        let full = i128::from(limit) * 60_000;
        let mut level = full;
        for step in 0..STEPS {
            clock_ms += if step == 0 { 0 } else { dice.pause_ms() };
            while latest_ms < clock_ms {
                latest_ms += 1;
                level = (level + i128::from(limit)).min(full);
            }
            let before = level;
            let allowed = level >= 60_000;
            if allowed {
                level -= 60_000;
            }
            let wait =
                |from: i128, to: i128| (to - from + i128::from(limit) - 1).div_euclid(limit.into()) as i64;
            let expected = RateDecision {
                allowed,
                limit,
                remaining: (level / 60_000) as u32,
                reset_at: Timestamp::from_ms(latest_ms + wait(level, full)),
                retry_after_ms: if allowed { 0 } else { wait(before, 60_000) },
            };
            let verdict = bucket.take(limit, Timestamp::from_ms(clock_ms));
            assert_eq!(verdict, expected, "seed {seed} step {step}");
        }
    }
}

#[test]
fn the_lockout_equals_a_model_with_a_list_of_all_failures() {
    for seed in [5u64, 6, 7] {
        let (mut dice, mut lockout) = (Dice(seed << 20 | 1), Lockout::default());
        let (mut now_ms, mut until_ms, mut times) = (START_MS, 0, 0);
        let mut all: Vec<i64> = Vec::new();
        let mut longest_ms = 0;
        for step in 0..STEPS {
            now_ms += match dice.below(200) {
                0 => dice.below(30 * 3_600_000),
                1..=20 => dice.below(60_000),
                _ => dice.below(2_000),
            }
            .cast_signed();
            let now = Timestamp::from_ms(now_ms);
            let shut_out = now_ms < until_ms;
            assert_eq!(lockout.until(now).is_some(), shut_out, "seed {seed} step {step}");
            if !shut_out {
                all.push(now_ms);
                let from = all.len().saturating_sub(20);
                if all.len() - from == 20 && now_ms - all[from] < 300_000 {
                    times = if now_ms - until_ms >= 86_400_000 { 1 } else { times + 1 };
                    let length_ms = (900_000i64 << (times - 1).min(20)).min(86_400_000);
                    until_ms = now_ms + length_ms;
                    longest_ms = longest_ms.max(length_ms);
                    all.clear();
                } else if now_ms - until_ms >= 86_400_000 {
                    times = 0;
                }
            }
            let said = lockout.fail(20, now).map(Timestamp::ms);
            assert_eq!(said, (now_ms < until_ms).then_some(until_ms), "seed {seed} step {step}");
        }
        assert!(longest_ms > 900_000, "the walk never doubled");
    }
}
