//! One process's workers, stepped by hand.

use std::sync::Arc;

use app::feed::Watcher;
use app::health::HealthMonitor;
use app::keys::audit::AuditWriter;
use app::kill_switches::SwitchReader;
use app::markets::{Reconciler, Sync};
use app::recovery::Recoverer;
use app::redemptions::{Announcer, Payer};
use app::trades::{Executor, Expiry};
use app::webhooks::dispatch_due;
use app::webhooks::sender::{Sender, SystemResolver};
use app::worker::{Progress, Worker};
use app::{AppError, Ctx};
use chain::Signer;
use domain::webhook::target::TargetPolicy;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// More ticks than any test's work needs.
const MANY_TICKS: usize = 10_000;

/// The expiry, the executors of all lanes, the sync, the payer, and those that the HTTP surface needs, as one process has
/// them.
pub struct Workers {
    /// The expiry of held trades.
    pub expiry: Expiry,
    /// One a lane.
    pub executors: Vec<Executor>,
    /// The sync.
    pub sync: Sync,
    /// Compares the tables with the chain; see [`Self::reconcile`].
    pub reconciler: Reconciler,
    /// Does nothing unless data was lost.
    pub recoverer: Recoverer,
    /// Does nothing unless winnings are paid automatically.
    pub payer: Payer,
    /// Tells the owners of settled positions; see [`Self::announce`].
    pub announcer: Announcer,
    /// Wakes those who listen; see [`Self::watch`].
    pub watcher: Watcher,
    /// What reads the operator's switches.
    pub switches: SwitchReader,
    /// What writes the audit log.
    pub audit: AuditWriter,
    /// Looks at what readiness shows; see [`Self::monitor`].
    pub monitor: HealthMonitor,
    /// What posts webhooks.
    pub sender: Arc<Sender>,
}

impl Workers {
    /// The workers of a process that calls itself `owner` in leases.
    pub fn new(executors: &[Signer], owner: &str) -> Self {
        let monitor = HealthMonitor::new(executors.iter().map(Signer::address).collect());
        let addresses = executors.iter().map(Signer::address).collect();
        let lanes = (0u16..).zip(executors);
        let executors = lanes.map(|(lane, signer)| Executor::new(lane, signer.clone(), owner.to_owned()));
        Self {
            expiry: Expiry,
            executors: executors.collect(),
            sync: Sync::new(owner.to_owned(), 0),
            reconciler: Reconciler::new(owner.to_owned()),
            recoverer: Recoverer::new(owner.to_owned(), addresses),
            payer: Payer::new(owner.to_owned()),
            announcer: Announcer::new(owner.to_owned()),
            watcher: Watcher::default(),
            switches: SwitchReader,
            audit: AuditWriter,
            monitor,
            sender: Arc::new(sender()),
        }
    }

    /// Steps everything until nothing is left to do.
    ///
    /// # Panics
    /// Where a tick fails or work never ends.
    pub async fn run(&self, ctx: &Ctx) {
        self.try_run(ctx).await.unwrap();
    }

    /// Steps everything until nothing is left to do, or a tick fails.
    ///
    /// # Errors
    /// That of the tick.
    ///
    /// # Panics
    /// Where work never ends.
    pub async fn try_run(&self, ctx: &Ctx) -> Result<(), AppError> {
        until_idle(&self.expiry, ctx).await?;
        until_idle(&self.payer, ctx).await?;
        until_idle(&self.switches, ctx).await?;
        until_idle(&self.audit, ctx).await?;
        for executor in &self.executors {
            until_idle(executor, ctx).await?;
        }
        until_idle(&self.sync, ctx).await?;
        if self.recoverer.tick(ctx).await? == Progress::More {
            until_idle(&self.switches, ctx).await?;
            self.execute_and_read(ctx).await?;
        } else if trades_wait(ctx).await? {
            // A trade is refused only by a block that was read.
            self.execute_and_read(ctx).await?;
        }
        dispatch_due(ctx, &self.sender).await.map(drop)
    }

    async fn execute_and_read(&self, ctx: &Ctx) -> Result<(), AppError> {
        for executor in &self.executors {
            until_idle(executor, ctx).await?;
        }
        until_idle(&self.sync, ctx).await
    }

    /// Steps the sync once.
    ///
    /// # Errors
    /// That of the tick.
    pub async fn sync_once(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        self.sync.tick(ctx).await
    }

    /// Steps the first executor once.
    ///
    /// # Errors
    /// That of the tick.
    pub async fn execute_once(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        self.executors[0].tick(ctx).await
    }

    /// Steps the deliveries alone; how many queues were due.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub async fn dispatch(&self, ctx: &Ctx) -> usize {
        dispatch_due(ctx, &self.sender).await.unwrap()
    }

    /// Steps the expiry alone.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub async fn expire(&self, ctx: &Ctx) {
        until_idle(&self.expiry, ctx).await.unwrap();
    }

    /// Steps the executors alone.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub async fn execute(&self, ctx: &Ctx) {
        for executor in &self.executors {
            until_idle(executor, ctx).await.unwrap();
        }
    }

    /// Tells the owners of settled positions.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub async fn announce(&self, ctx: &Ctx) {
        until_idle(&self.announcer, ctx).await.unwrap();
    }

    /// Wakes those who listen to what has happened.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub async fn watch(&self, ctx: &Ctx) {
        until_idle(&self.watcher, ctx).await.unwrap();
    }

    /// Steps the recovery alone.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub async fn recover(&self, ctx: &Ctx) {
        until_idle(&self.recoverer, ctx).await.unwrap();
    }

    /// Steps the reconciler alone, once.
    ///
    /// # Panics
    /// If the tick fails.
    pub async fn reconcile(&self, ctx: &Ctx) {
        self.reconciler.tick(ctx).await.unwrap();
    }

    /// Looks once at what readiness shows.
    ///
    /// # Panics
    /// If the tick fails.
    pub async fn monitor(&self, ctx: &Ctx) {
        self.monitor.tick(ctx).await.unwrap();
    }

    /// Steps the sync alone.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub async fn synchronise(&self, ctx: &Ctx) {
        until_idle(&self.sync, ctx).await.unwrap();
    }

    /// Gives the leases up, as a process does that stops in order.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn release(&self, ctx: &Ctx) {
        for executor in &self.executors {
            executor.release(ctx).await.unwrap();
        }
        self.sync.release(ctx).await.unwrap();
        self.recoverer.release(ctx).await.unwrap();
        self.reconciler.release(ctx).await.unwrap();
        self.payer.release(ctx).await.unwrap();
        self.announcer.release(ctx).await.unwrap();
    }
}

/// Posts to this machine, and trusts no certificate: receivers of tests speak HTTP.
fn sender() -> Sender {
    let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Sender::with_tls(TargetPolicy::development(), Arc::<SystemResolver>::default(), tls)
}

async fn until_idle<W: Worker>(worker: &W, ctx: &Ctx) -> Result<(), AppError> {
    for _ in 0..MANY_TICKS {
        if worker.tick(ctx).await? == Progress::Idle {
            return Ok(());
        }
    }
    panic!("{} never comes to rest", worker.name());
}

/// Whether trades were claimed and neither signed nor refused.
async fn trades_wait(ctx: &Ctx) -> Result<bool, AppError> {
    const SQL: &str = "SELECT 1 FROM trades WHERE status = 'validating' LIMIT 1";
    let waits: Result<Option<i64>, store::StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(async move { tx.find(SQL, &[], |row| row.int(0)).await })).await;
    Ok(waits?.is_some())
}
