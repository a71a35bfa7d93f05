//! The workers of a process that serves.

use std::sync::Arc;
use std::time::Duration;

use app::Ctx;
use app::cleanup::Cleaner;
use app::feed::Watcher;
use app::health::HealthMonitor;
use app::keys::audit::AuditWriter;
use app::kill_switches::SwitchReader;
use app::markets::{Reconciler, Sync};
use app::nodes::NodeWatcher;
use app::recovery::Recoverer;
use app::redemptions::{Announcer, Payer, Redemptions};
use app::trades::{Executor, Expiry};
use app::usage::Flusher;
use app::webhooks::Dispatcher;
use app::webhooks::sender::{Sender, SystemResolver};
use app::worker::{Worker, supervise};
use chain::Signer;
use domain::webhook::target::TargetPolicy;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::run::{Parts, StartError};

/// How long idle workers wait for their signal before they look by themselves.
const WORKER_PAUSE: Duration = Duration::from_millis(250);
/// How long a held trade may be past its window before it is failed; a confirm is refused at once.
const EXPIRY_PAUSE: Duration = Duration::from_secs(1);
/// How long the reconciler waits between two of its small pieces of work.
const RECONCILER_PAUSE: Duration = Duration::from_secs(1);
/// How long a recovery waits before it looks again whether it can go on.
const RECOVERER_PAUSE: Duration = Duration::from_millis(500);
/// How long the payer waits at the most; nobody waits for it.
const PAYER_PAUSE: Duration = Duration::from_secs(2);
/// How long an event that another process has written, or a retry that is due, may wait to be seen.
const DISPATCHER_PAUSE: Duration = Duration::from_millis(100);
const CLEANER_PAUSE: Duration = Duration::from_secs(60);
/// The most of its keys' use that a process can lose by dying.
const USAGE_PAUSE: Duration = Duration::from_secs(5);
/// Less than half a second, so that a switch is effective within one even where reading it takes a while.
const SWITCHES_PAUSE: Duration = Duration::from_millis(400);
/// How old what readiness shows may be.
const MONITOR_PAUSE: Duration = Duration::from_secs(5);
const AUDIT_PAUSE: Duration = Duration::from_secs(1);
/// How long a node that answers for another chain, or is back, may go unnoticed.
const NODES_PAUSE: Duration = Duration::from_secs(1);

/// Starts every worker; they stop when `stopped` turns true.
pub fn start(
    parts: &Parts,
    first_block: u64,
    stopped: &watch::Receiver<bool>,
) -> Result<JoinSet<()>, StartError> {
    let mut ctx = parts.ctx.clone();
    ctx.store = ctx.store.for_workers();
    // A new name at each start: what an earlier life of this process held is another owner's.
    let owner = ctx.uuid().to_string();
    let executors: Vec<_> = parts.secrets.executors()?.iter().map(Signer::address).collect();
    let mut workers = Supervised { ctx: &ctx, stopped, tasks: JoinSet::new() };
    for (lane, signer) in (0u16..).zip(parts.secrets.executors()?) {
        let owner = owner.clone();
        workers.spawn(WORKER_PAUSE, move || Executor::new(lane, signer.clone(), owner.clone()));
    }
    if ctx.config.redemptions == Redemptions::Automatic {
        let payer = owner.clone();
        workers.spawn(PAYER_PAUSE, move || Payer::new(payer.clone()));
    }
    let (recoverer, lanes) = (owner.clone(), executors.clone());
    workers.spawn(RECOVERER_PAUSE, move || {
        Recoverer::new(recoverer.clone(), lanes.clone()).acting_as(crate::actor::service())
    });
    let announcer = owner.clone();
    workers.spawn(PAYER_PAUSE, move || Announcer::new(announcer.clone()));
    workers.spawn(WORKER_PAUSE, Watcher::default);
    let reconciler = owner.clone();
    workers.spawn(RECONCILER_PAUSE, move || Reconciler::new(reconciler.clone()));
    workers.spawn(WORKER_PAUSE, move || Sync::new(owner.clone(), first_block));
    workers.spawn(EXPIRY_PAUSE, || Expiry);
    workers.spawn(CLEANER_PAUSE, || Cleaner);
    let sender = Arc::new(sender(ctx.config.webhooks.targets.clone())?);
    let max_in_flight = ctx.config.webhooks.max_in_flight;
    workers.spawn(DISPATCHER_PAUSE, move || Dispatcher::new(Arc::clone(&sender), max_in_flight));
    workers.spawn(MONITOR_PAUSE, move || HealthMonitor::new(executors.clone()));
    workers.spawn(USAGE_PAUSE, || Flusher);
    workers.spawn(SWITCHES_PAUSE, || SwitchReader);
    workers.spawn(AUDIT_PAUSE, || AuditWriter);
    if ctx.chain.nodes().is_some() {
        workers.spawn(NODES_PAUSE, || NodeWatcher);
    }
    Ok(workers.tasks)
}

struct Supervised<'a> {
    ctx: &'a Ctx,
    stopped: &'a watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

impl Supervised<'_> {
    /// Starts the worker that `make` makes, and a new one whenever it panics.
    fn spawn<W: Worker + 'static>(
        &mut self,
        pause: Duration,
        make: impl Fn() -> W + Send + std::marker::Sync + 'static,
    ) {
        self.tasks.spawn(supervise(make, self.ctx.clone(), pause, self.stopped.clone()));
    }
}

/// What posts webhooks. A machine that believes no certificate runs all the same: its deliveries by https fail, and are tried
/// again after the next start.
fn sender(targets: TargetPolicy) -> Result<Sender, StartError> {
    let resolver = Arc::<SystemResolver>::default();
    Sender::new(targets.clone(), resolver.clone())
        .or_else(|error| {
            tracing::error!(%error, "no certificate is believed here: webhooks by https fail until the machine has authorities");
            Sender::believing_nobody(targets, resolver)
        })
        .map_err(|error| StartError::Other(format!("TLS: {error}")))
}
