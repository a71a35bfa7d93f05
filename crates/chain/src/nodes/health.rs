//! How well a node has answered lately, and whether it has a pause.

use std::time::Duration;

use tokio::time::Instant;

/// The pause after the second failure in a row. It doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause: a node that is back is used again soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// What a node that always fails scores worse than one that never does, in milliseconds of latency.
const ERROR_COST: u64 = 5_000;

/// A node's latest failures, errors and latencies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Health {
    failures: u32,
    paused_until: Option<Instant>,
    latency_ms: u64,
    /// The share of errors among the latest answers.
    errors_permille: u64,
}

impl Health {
    /// Notes an answer.
    pub fn record_answer(&mut self, latency: Duration) {
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX).min(60_000);
        self.latency_ms =
            if self.latency_ms == 0 { latency_ms } else { (self.latency_ms * 7 + latency_ms) / 8 };
        self.errors_permille = self.errors_permille * 7 / 8;
        self.failures = 0;
        self.paused_until = None;
    }

    /// Notes an answer that says that the node could not do what it was asked.
    pub fn record_error(&mut self) {
        self.errors_permille = (self.errors_permille * 7 + 1_000) / 8;
    }

    /// Notes that no usable answer came. Requests that were open at the same time count as one.
    pub fn record_failure(&mut self, now: Instant) {
        self.record_error();
        if self.is_paused(now) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if let Some(doublings) = self.failures.checked_sub(2) {
            let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(8)).min(LONGEST_PAUSE);
            self.paused_until = Some(now + pause);
        }
    }

    /// Whether the node is left alone now.
    pub fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// The smoothed latency.
    pub const fn latency_ms(&self) -> u64 {
        self.latency_ms
    }

    /// What is compared between nodes: less is better.
    pub const fn score(&self) -> u64 {
        self.latency_ms + self.errors_permille * ERROR_COST / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_makes_no_pause_and_further_ones_make_longer_pauses_up_to_two_seconds() {
        let mut health = Health::default();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..7 {
            health.record_failure(now);
            let until = health.paused_until.unwrap_or(now);
            pauses.push((until - now).as_millis());
            now = until;
        }
        assert_eq!(pauses, [0, 250, 500, 1_000, 2_000, 2_000, 2_000]);
        health.record_answer(Duration::from_millis(5));
        health.record_failure(now);
        assert!(!health.is_paused(now));
    }

    #[test]
    fn failures_of_requests_that_were_open_together_count_once() {
        let mut health = Health::default();
        let now = Instant::now();
        for _ in 0..50 {
            health.record_failure(now);
        }
        assert!(!health.is_paused(now + FIRST_PAUSE));
    }

    #[test]
    fn errors_and_latency_make_a_node_worse_until_it_answers_well_again() {
        let (mut good, mut bad) = (Health::default(), Health::default());
        for _ in 0..20 {
            good.record_answer(Duration::from_millis(80));
            bad.record_answer(Duration::from_millis(20));
            bad.record_error();
        }
        assert!(good.score() < bad.score());
        for _ in 0..60 {
            bad.record_answer(Duration::from_millis(20));
        }
        assert!(bad.score() < good.score());
    }
}
