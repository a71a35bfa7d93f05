//! Log lines that a stranger can cause, at most one per period.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Lets one event pass per period and counts the others.
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
    /// One event per `period`.
    pub const fn every(period: Duration) -> Self {
        Self { period, state: Mutex::new(State { passed_at: None, held_back: 0 }) }
    }

    /// How many events there were since the last one that passed, this one included, if this one passes.
    pub fn pass(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
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
    fn one_event_passes_per_period_and_says_how_many_did_not() {
        let (throttle, start) = (Throttle::every(Duration::from_secs(60)), Instant::now());
        let passed = |s| throttle.pass(start + Duration::from_secs(s));
        assert_eq!(
            [passed(0), passed(1), passed(59), passed(60), passed(61)],
            [Some(1), None, None, Some(3), None]
        );
    }
}
