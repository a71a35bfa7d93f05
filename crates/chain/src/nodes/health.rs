//! Tracks a node's recent failures, errors and latencies.

use std::time::Duration;

use tokio::time::Instant;

/// The pause after the second consecutive failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The maximum pause. It is short, so that a recovered node is used again soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The penalty of a node that always fails over one that never fails, in milliseconds of latency.
const ERROR_COST: u64 = 5_000;

#[derive(Debug, Clone, Copy, Default)]
pub struct Health {
    failures: u32,
    paused_until: Option<Instant>,
    latency_ms: u64,
    /// The smoothed share of errors among the answers, in thousandths.
    errors_permille: u64,
}

impl Health {
    /// Records an answer.
    pub fn record_answer(&mut self, latency: Duration) {
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX).min(60_000);
        self.latency_ms =
            // Exponential smoothing: the new value counts one eighth.
            if self.latency_ms == 0 { latency_ms } else { (self.latency_ms * 7 + latency_ms) / 8 };
        self.errors_permille = self.errors_permille * 7 / 8;
        self.failures = 0;
        self.paused_until = None;
    }

    /// Records an error response: the node answered, but could not serve the request.
    pub fn record_error(&mut self) {
        self.errors_permille = (self.errors_permille * 7 + 1_000) / 8;
    }

    /// Records that no usable answer arrived. Failures during a pause do not extend it, because
    /// their requests may have started before it.
    pub fn record_failure(&mut self, now: Instant) {
        self.record_error();
        if self.is_paused(now) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        // A single failure causes no pause.
        if let Some(doublings) = self.failures.checked_sub(2) {
            let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(8)).min(LONGEST_PAUSE);
            self.paused_until = Some(now + pause);
        }
    }

    /// Returns true while the node must not be used.
    pub fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    pub const fn latency_ms(&self) -> u64 {
        self.latency_ms
    }

    /// Returns the value by which nodes are compared: lower is better.
    pub const fn score(&self) -> u64 {
        self.latency_ms + self.errors_permille * ERROR_COST / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_the_second_failure_up_to_two_seconds() {
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
    fn failures_of_concurrent_requests_count_once() {
        let mut health = Health::default();
        let now = Instant::now();
        for _ in 0..50 {
            health.record_failure(now);
        }
        assert!(!health.is_paused(now + FIRST_PAUSE));
    }

    #[test]
    fn errors_and_latency_lower_a_nodes_score_until_it_recovers() {
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
