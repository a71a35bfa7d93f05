//! The sign of life of this process's webhook dispatcher.

use std::sync::atomic::{AtomicI64, Ordering};

use domain::Timestamp;

/// The time between two signs.
const PERIOD_MS: i64 = 5_000;
/// Means "never" in [`Pulse`].
const NEVER: i64 = i64::MIN;

/// The time at which this process's dispatcher last announced that it looks for due queues.
#[derive(Debug)]
pub struct Pulse(AtomicI64);

impl Default for Pulse {
    fn default() -> Self {
        Self(AtomicI64::new(NEVER))
    }
}

impl Pulse {
    /// Returns whether the next sign is due. The caller then gives it.
    pub(crate) fn must_beat(&self, now: Timestamp) -> bool {
        let last_ms = self.0.load(Ordering::Relaxed);
        let is_due = last_ms == NEVER || now.since_ms(Timestamp::from_ms(last_ms)).abs() >= PERIOD_MS;
        if is_due {
            self.0.store(now.ms(), Ordering::Relaxed);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_due_at_once_and_then_every_five_seconds() {
        let pulse = Pulse::default();
        let must_beat = |s: i64| pulse.must_beat(Timestamp::from_s(1_777_464_000).plus_ms(s * 1_000));
        assert_eq!([0, 1, 4, 5, 6, 10].map(must_beat), [true, false, false, true, false, true]);
    }
}
