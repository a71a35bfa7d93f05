//! What this process has changed: versions that let readers keep what they have read until it is old, and a signal.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// What one unit, or a group of them, has changed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Touched {
    /// What is shown of markets.
    pub(super) markets: bool,
    /// Events were written.
    pub(super) events: bool,
}

impl Touched {
    /// What either has changed.
    pub(super) const fn and(self, other: Self) -> Self {
        Self { markets: self.markets || other.markets, events: self.events || other.events }
    }
}

/// What is raised after a write is durable and before it is answered.
#[derive(Debug, Default)]
pub(super) struct Changes {
    markets: AtomicU64,
    events: Notify,
}

impl Changes {
    pub(super) fn markets_version(&self) -> u64 {
        self.markets.load(Ordering::Acquire)
    }

    pub(super) const fn events_written(&self) -> &Notify {
        &self.events
    }

    pub(super) fn tell(&self, touched: Touched) {
        if touched.markets {
            self.markets.fetch_add(1, Ordering::AcqRel);
        }
        if touched.events {
            self.events.notify_waiters();
        }
    }
}
