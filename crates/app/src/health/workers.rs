//! Problems of this process's workers.

use domain::Timestamp;
use domain::time::MINUTE_MS;

use super::{Degradation, Reason};
use crate::process::worker_registry::{WorkerRegistry, WorkerStatus};

/// The time that a panic is reported.
const PANIC_SHOWN_MS: i64 = MINUTE_MS;
/// The time after which repeated failures are reported. A single failure is not.
const FAILING_MS: i64 = 10_000;
/// The time after which a running tick is reported as hanging.
const LONG_TICK_MS: i64 = MINUTE_MS;

/// Returns the problems of this process's workers.
pub(super) fn degradations(workers: &WorkerRegistry, now: Timestamp) -> Vec<Degradation> {
    let workers = workers.list();
    let named = |is_wrong: fn(&WorkerStatus, Timestamp) -> bool| {
        let wrong = workers.iter().filter(|(_, status)| is_wrong(status, now));
        let wrong: Vec<&str> = wrong.map(|(label, _)| label.as_str()).collect();
        (!wrong.is_empty()).then(|| wrong.join(", "))
    };
    let panicked = named(has_panicked)
        .map(|workers| (Reason::WorkerPanicked, format!("These workers have panicked: {workers}.")));
    let failing = named(is_failing)
        .map(|workers| (Reason::WorkerFailing, format!("These workers fail or hang: {workers}.")));
    let found = [panicked, failing].into_iter().flatten();
    found.map(|(reason, detail)| Degradation::new(reason, detail)).collect()
}

fn has_panicked(status: &WorkerStatus, now: Timestamp) -> bool {
    status.is_down || status.panicked_at.is_some_and(|at| now.since_ms(at) <= PANIC_SHOWN_MS)
}

fn is_failing(status: &WorkerStatus, now: Timestamp) -> bool {
    let since = |at: Option<Timestamp>, longest| at.is_some_and(|at| now.since_ms(at) >= longest);
    since(status.failing_since, FAILING_MS) || since(status.tick_began_at, LONG_TICK_MS)
}
