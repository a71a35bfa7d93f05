//! The sign of life of the webhook dispatcher.

use std::sync::atomic::{AtomicI64, Ordering};

use domain::Timestamp;

/// The time after which a dispatcher that has not ticked counts as stopped.
const STALE_MS: i64 = 10_000;
/// Means "never" in [`Pulse`].
const NEVER: i64 = i64::MIN;

/// The time at which this process's dispatcher last looked for due queues.
#[derive(Debug)]
pub struct Pulse(AtomicI64);

impl Default for Pulse {
    fn default() -> Self {
        Self(AtomicI64::new(NEVER))
    }
}

impl Pulse {
    pub(crate) fn beat(&self, now: Timestamp) {
        self.0.store(now.ms(), Ordering::Relaxed);
    }

    /// Returns whether the dispatcher is running. True if this process has never started one.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        let last_ms = self.0.load(Ordering::Relaxed);
        last_ms == NEVER || now.since_ms(Timestamp::from_ms(last_ms)) <= STALE_MS
    }
}
