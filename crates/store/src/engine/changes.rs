//! What this process has changed: versions that let readers keep what they have read until it is old.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that a write raises after it is durable and before it is answered.
#[derive(Debug, Default)]
pub(super) struct Changes {
    markets: AtomicU64,
}

impl Changes {
    pub(super) fn markets_version(&self) -> u64 {
        self.markets.load(Ordering::Acquire)
    }

    pub(super) fn markets_changed(&self) {
        self.markets.fetch_add(1, Ordering::AcqRel);
    }
}
