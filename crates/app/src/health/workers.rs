//! What the workers' registry says of the service.

use domain::Timestamp;
use domain::time::MINUTE_MS;

use super::{Degradation, Reason};
use crate::worker::{WorkerRegistry, WorkerStatus};

/// For how long a panic is shown.
const PANIC_SHOWN_MS: i64 = MINUTE_MS;
/// A worker that has failed for longer is shown: a single failure is not.
const FAILING_MS: i64 = 10_000;
/// A tick that takes longer is shown.
const LONG_TICK_MS: i64 = MINUTE_MS;

/// What is wrong with the workers of this process.
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
