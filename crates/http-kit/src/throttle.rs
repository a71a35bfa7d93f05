//! Throttles log lines that clients can trigger, so that they cannot flood the log.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Passes one event per period and counts the suppressed ones.
#[derive(Debug)]
pub struct Throttle {
    period: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    passed_at: Option<Instant>,
    held_back: u64,
}

impl Throttle {
    pub const fn every(period: Duration) -> Self {
        Self { period, state: Mutex::new(State { passed_at: None, held_back: 0 }) }
    }

    /// Returns `None` if the event must be suppressed. Otherwise returns the number of events since
    /// the last one that passed, including this one.
    pub fn pass(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        // Count before deciding, so that the reported number includes suppressed events.
        state.held_back += 1;
        if state.passed_at.is_some_and(|at| now.saturating_duration_since(at) < self.period) {
            return None;
        }
        state.passed_at = Some(now);
        Some(std::mem::take(&mut state.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_per_period_is_logged_with_the_number_of_dropped_ones() {
        let (throttle, start) = (Throttle::every(Duration::from_secs(60)), Instant::now());
        let passed = |s| throttle.pass(start + Duration::from_secs(s));
        assert_eq!(
            [passed(0), passed(1), passed(59), passed(60), passed(61)],
            [Some(1), None, None, Some(3), None]
        );
    }
}
