//! Starts the background workers of a serving process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use app::Ctx;
use app::cleanup::Cleaner;
use app::config::Redemptions;
use app::event_sink::EventSink;
use app::feed::Watcher;
use app::health::{CheckWatcher, ClockWatcher, HealthMonitor, PoolWatcher, StorageWatcher};
use app::keys::audit::AuditWriter;
use app::kill_switches::SwitchReader;
use app::lanes::GasTreasury;
use app::ledger::{Reconciler, Sync};
use app::nodes::NodeWatcher;
use app::recovery::Recoverer;
use app::redemptions::{Announcer, Payer};
use app::request_log::RequestWriter;
use app::trades::{Executor, Expiry, SandboxCheck};
use app::usage::Flusher;
use app::webhooks::Dispatcher;
use app::webhooks::sender::{SystemResolver, WebhookSender};
use app::worker::{Worker, supervise};
use chain::Signer;
use domain::lane::SignerKind;
use domain::webhook::target::TargetPolicy;
use store::lanes::Lane;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::nats::{NatsPublisher, NatsSettings};
use crate::process_roles::{ProcessRole, ProcessRoles};
use crate::secrets::Secrets;
use crate::start_error::StartError;

/// Longest time an idle worker waits for a signal before it polls.
const WORKER_PAUSE: Duration = Duration::from_millis(250);
/// Longest time a held trade stays past its window before it is failed. A confirm after the window
/// is rejected at once.
const EXPIRY_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two steps of the reconciler. Each step is small.
const RECONCILER_PAUSE: Duration = Duration::from_secs(1);
/// Longest time a blocked recovery waits before it checks again.
const RECOVERER_PAUSE: Duration = Duration::from_millis(500);
/// Pause between two looks at the executors' balances.
const TREASURY_PAUSE: Duration = Duration::from_secs(30);
/// Pause of the payer. No caller waits for its work, so it may be slow.
const PAYER_PAUSE: Duration = Duration::from_secs(2);
/// Longest delay before an event of another process, or a due retry, is noticed.
const DISPATCHER_PAUSE: Duration = Duration::from_millis(100);
/// Longest delay before an event is published. No signal wakes the sink, so that it publishes many
/// events in a step under load.
const SINK_PAUSE: Duration = Duration::from_millis(100);
const CLEANER_PAUSE: Duration = Duration::from_secs(60);
/// Pause of the usage flusher: a crash loses at most this much of the usage counts.
const USAGE_PAUSE: Duration = Duration::from_secs(5);
/// Longest time until a request is in its owner's log.
const REQUESTS_PAUSE: Duration = Duration::from_secs(5);
/// Less than half a second, so that a switch takes effect within a second even if reading it is
/// slow.
const SWITCHES_PAUSE: Duration = Duration::from_millis(400);
/// Maximum age of the state that readiness reports.
const MONITOR_PAUSE: Duration = Duration::from_secs(5);
/// Longest time until a failed check is visible in the metrics.
const CHECKS_PAUSE: Duration = Duration::from_secs(5);
/// Clocks drift slowly. Somebody who sets one must see the effect soon.
const CLOCK_PAUSE: Duration = Duration::from_secs(10);
/// Less than the ten seconds after which an exhausted pool makes the process unready.
const POOLS_PAUSE: Duration = Duration::from_secs(1);
/// Longest time until a file is noticed that was deleted, or a disk that is full no longer.
const STORAGE_PAUSE: Duration = Duration::from_secs(1);
const AUDIT_PAUSE: Duration = Duration::from_secs(1);
/// Longest time until a node is noticed that serves another chain or has recovered.
const NODES_PAUSE: Duration = Duration::from_secs(1);

/// The inputs of a process's workers, in addition to the context.
pub struct WorkerSettings<'a> {
    pub roles: &'a ProcessRoles,
    pub secrets: &'a Secrets,
    /// The stream that gets all events, if any.
    pub nats: Option<&'a NatsSettings>,
    /// The first block whose events are read into an empty database.
    pub first_block: u64,
    /// False if clients move the clock.
    pub watches_clock: bool,
}

/// Starts the workers of the process's roles. They stop when `stopped` becomes true.
pub fn start(
    ctx: &Ctx,
    settings: &WorkerSettings<'_>,
    stopped: &watch::Receiver<bool>,
) -> Result<JoinSet<()>, StartError> {
    let WorkerSettings { roles, secrets, nats, first_block, watches_clock } = *settings;
    let mut ctx = ctx.clone();
    // Workers have their own connections, so that many requests cannot starve them.
    ctx.store = ctx.store.for_workers();
    ctx.chain = ctx.chain.for_workers();
    // A new owner name at each start, so that this process cannot mistake an earlier run's leases
    // for its own.
    let owner = ctx.uuid().to_string();
    let mut workers = Supervised { ctx: &ctx, stopped, tasks: JoinSet::new() };
    workers.spawn_common();
    if watches_clock {
        workers.spawn(CLOCK_PAUSE, ClockWatcher::default);
    }
    if roles.has(ProcessRole::Api) {
        workers.spawn_api();
    }
    if roles.has(ProcessRole::Executor) {
        workers.spawn_executors(secrets.executors()?, &owner);
    } else {
        // Without this value, no metric would say that no process runs a lane.
        let lanes = ctx.process.lanes.in_use();
        lanes.iter().for_each(|lane| ctx.process.metrics.lane_leader(lane.lane, false));
    }
    if roles.has(ProcessRole::Sync) {
        let owner = owner.clone();
        workers.spawn(WORKER_PAUSE, move || Sync::new(owner.clone(), first_block));
    }
    if roles.has(ProcessRole::Dispatcher) {
        let sender = Arc::new(sender(ctx.config.webhooks.targets.clone())?);
        let max_in_flight = ctx.config.webhooks.max_in_flight;
        workers.spawn(DISPATCHER_PAUSE, move || Dispatcher::new(Arc::clone(&sender), max_in_flight));
        if let Some(nats) = nats.cloned() {
            let owner = owner.clone();
            workers.spawn(SINK_PAUSE, move || {
                EventSink::new(Arc::new(NatsPublisher::new(nats.clone())), owner.clone())
            });
        }
    }
    if roles.has(ProcessRole::Upkeep) {
        workers.spawn_upkeep(&owner);
    }
    Ok(workers.tasks)
}

struct Supervised<'a> {
    ctx: &'a Ctx,
    stopped: &'a watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

impl Supervised<'_> {
    /// Starts the workers that every process has: they watch its own state, and the switches that
    /// each part of the service obeys.
    fn spawn_common(&mut self) {
        self.spawn(MONITOR_PAUSE, HealthMonitor::default);
        self.spawn(CHECKS_PAUSE, || CheckWatcher);
        self.spawn(POOLS_PAUSE, || PoolWatcher);
        let ctx = self.ctx.clone();
        self.spawn(STORAGE_PAUSE, move || StorageWatcher::new(&ctx));
        self.spawn(SWITCHES_PAUSE, || SwitchReader);
        if self.ctx.chain.nodes().is_some() {
            self.spawn(NODES_PAUSE, || NodeWatcher);
        }
    }

    /// Starts the workers that serve open streams, and that write what requests left in memory.
    fn spawn_api(&mut self) {
        self.spawn(WORKER_PAUSE, Watcher::default);
        self.spawn(USAGE_PAUSE, || Flusher);
        self.spawn(REQUESTS_PAUSE, || RequestWriter);
        self.spawn(AUDIT_PAUSE, || AuditWriter);
    }

    /// Starts the lanes whose keys this process has or can use in remote signers, and what pays for
    /// their gas.
    fn spawn_executors(&mut self, signers: Vec<Signer>, owner: &str) {
        // Two workers of one lane would share its lease, and sign one nonce twice.
        let mut run = BTreeSet::new();
        for signer in signers {
            // Every configured executor has got a lane when the database was opened. If its key is held
            // elsewhere now, that key signs.
            let lane = self.ctx.process.lanes.find(signer.address());
            let Some(Lane { lane, .. }) = lane.filter(|lane| lane.signer == SignerKind::File) else {
                continue;
            };
            if !run.insert(lane) {
                continue;
            }
            let owner = owner.to_owned();
            self.spawn_executor(move || Executor::new(lane, signer.clone(), owner.clone()));
        }
        for (lane, signer) in app::lanes::remote(self.ctx) {
            if !run.insert(lane) {
                continue;
            }
            let owner = owner.to_owned();
            self.spawn_executor(move || Executor::new(lane, signer.clone(), owner.clone()));
        }
        if let Some((key, cap)) = self.ctx.config.gas_treasury.clone() {
            let owner = owner.to_owned();
            self.spawn(TREASURY_PAUSE, move || GasTreasury::new(key.clone(), cap, owner.clone()));
        }
    }

    fn spawn_executor(&mut self, make: impl Fn() -> Executor + Send + std::marker::Sync + 'static) {
        if self.ctx.config.sandbox {
            self.spawn(WORKER_PAUSE, move || make().checked_by(SandboxCheck));
        } else {
            self.spawn(WORKER_PAUSE, make);
        }
    }

    fn spawn_upkeep(&mut self, owner: &str) {
        if self.ctx.config.redemptions == Redemptions::Automatic {
            let payer = owner.to_owned();
            self.spawn(PAYER_PAUSE, move || Payer::new(payer.clone()));
        }
        let executors: Vec<_> = self.ctx.process.lanes.list().iter().map(|lane| lane.executor).collect();
        let recoverer = owner.to_owned();
        self.spawn(RECOVERER_PAUSE, move || {
            Recoverer::new(recoverer.clone(), executors.clone()).acting_as(crate::actor::service())
        });
        let announcer = owner.to_owned();
        self.spawn(PAYER_PAUSE, move || Announcer::new(announcer.clone()));
        let reconciler = owner.to_owned();
        self.spawn(RECONCILER_PAUSE, move || Reconciler::new(reconciler.clone()));
        self.spawn(EXPIRY_PAUSE, || Expiry);
        self.spawn(CLEANER_PAUSE, || Cleaner);
    }

    /// Runs the worker that `make` creates, and replaces it with a new one if it panics.
    fn spawn<W: Worker + 'static>(
        &mut self,
        pause: Duration,
        make: impl Fn() -> W + Send + std::marker::Sync + 'static,
    ) {
        self.tasks.spawn(supervise(make, self.ctx.clone(), pause, self.stopped.clone()));
    }
}

/// Creates the webhook sender. If the machine has no CA certificates, the service starts anyway:
/// deliveries over https fail and are retried, and work after a restart with certificates
/// installed.
fn sender(targets: TargetPolicy) -> Result<WebhookSender, StartError> {
    let resolver = Arc::<SystemResolver>::default();
    WebhookSender::new(targets.clone(), resolver.clone())
        .or_else(|error| {
            tracing::error!(%error, "this machine has no certificate authorities: https webhooks fail until they are installed");
            WebhookSender::believing_nobody(targets, resolver)
        })
        .map_err(|error| StartError::Other(format!("TLS: {error}")))
}
