//! How the workers of this process fare, for readiness.

use std::collections::BTreeMap;

use domain::Timestamp;
use parking_lot::Mutex;

/// How one worker fares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// How often it has panicked since the process started.
    pub panics: u64,
    /// When it panicked last.
    pub panicked_at: Option<Timestamp>,
    /// Whether it waits to be restarted.
    pub is_down: bool,
    /// Since when every tick has failed.
    pub failing_since: Option<Timestamp>,
    /// How many ticks in a row have failed.
    pub failed_ticks: u32,
    /// When the running tick began.
    pub tick_began_at: Option<Timestamp>,
}

/// The supervised workers of this process by their labels.
#[derive(Debug, Default)]
pub struct WorkerRegistry(Mutex<BTreeMap<String, WorkerStatus>>);

impl WorkerRegistry {
    /// Every worker and how it fares.
    pub fn list(&self) -> Vec<(String, WorkerStatus)> {
        self.0.lock().iter().map(|(label, status)| (label.clone(), status.clone())).collect()
    }

    pub(super) fn start(&self, label: &str) {
        self.update(label, |status| status.is_down = false);
    }

    pub(super) fn tick_begins(&self, label: &str, now: Timestamp) {
        self.update(label, |status| status.tick_began_at = Some(now));
    }

    pub(super) fn tick_succeeds(&self, label: &str) {
        self.update(label, |status| {
            (status.tick_began_at, status.failing_since, status.failed_ticks) = (None, None, 0);
        });
    }

    pub(super) fn tick_fails(&self, label: &str, now: Timestamp) {
        self.update(label, |status| {
            status.tick_began_at = None;
            status.failing_since.get_or_insert(now);
            status.failed_ticks = status.failed_ticks.saturating_add(1);
        });
    }

    pub(super) fn panics(&self, label: &str, now: Timestamp) {
        self.update(label, |status| {
            status.panics += 1;
            (status.panicked_at, status.is_down, status.tick_began_at) = (Some(now), true, None);
        });
    }

    fn update(&self, label: &str, change: impl FnOnce(&mut WorkerStatus)) {
        let mut workers = self.0.lock();
        match workers.get_mut(label) {
            Some(status) => change(status),
            None => change(workers.entry(label.to_owned()).or_default()),
        }
    }
}
