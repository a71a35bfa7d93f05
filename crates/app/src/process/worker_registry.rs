//! The health of this process's workers, for readiness.

use std::collections::BTreeMap;

use domain::Timestamp;
use parking_lot::Mutex;

/// The health of one worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The number of panics since the process started.
    pub panics: u64,
    pub panicked_at: Option<Timestamp>,
    /// The worker has panicked and waits for its restart.
    pub is_down: bool,
    /// The time since which every tick has failed.
    pub failing_since: Option<Timestamp>,
    /// The number of consecutive failed ticks.
    pub failed_ticks: u32,
    /// The start of the running tick.
    pub tick_began_at: Option<Timestamp>,
}

/// The supervised workers of this process, by label.
#[derive(Debug, Default)]
pub struct WorkerRegistry(Mutex<BTreeMap<String, WorkerStatus>>);

impl WorkerRegistry {
    /// Returns every worker's label and status.
    pub fn list(&self) -> Vec<(String, WorkerStatus)> {
        self.0.lock().iter().map(|(label, status)| (label.clone(), status.clone())).collect()
    }

    pub(crate) fn start(&self, label: &str) {
        self.update(label, |status| status.is_down = false);
    }

    pub(crate) fn tick_begins(&self, label: &str, now: Timestamp) {
        self.update(label, |status| status.tick_began_at = Some(now));
    }

    pub(crate) fn tick_succeeds(&self, label: &str) {
        self.update(label, |status| {
            (status.tick_began_at, status.failing_since, status.failed_ticks) = (None, None, 0);
        });
    }

    pub(crate) fn tick_fails(&self, label: &str, now: Timestamp) {
        self.update(label, |status| {
            status.tick_began_at = None;
            status.failing_since.get_or_insert(now);
            status.failed_ticks = status.failed_ticks.saturating_add(1);
        });
    }

    pub(crate) fn panics(&self, label: &str, now: Timestamp) {
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
