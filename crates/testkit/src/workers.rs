//! The workers of one process, stepped by the test.

use std::sync::Arc;

use app::feed::Watcher;
use app::health::HealthMonitor;
use app::keys::audit::AuditWriter;
use app::kill_switches::SwitchReader;
use app::ledger::{Reconciler, Sync};
use app::recovery::Recoverer;
use app::redemptions::{Announcer, Payer};
use app::trades::{Executor, Expiry, SandboxCheck};
use app::webhooks::dispatch_due;
use app::webhooks::sender::{SystemResolver, WebhookSender};
use app::worker::{Progress, Worker};
use app::{AppError, Ctx};
use chain::Signer;
use domain::webhook::target::TargetPolicy;
use futures::future::BoxFuture;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// More ticks than any test's work needs.
const MANY_TICKS: usize = 10_000;

/// The workers of one process.
pub struct Workers {
    pub expiry: Expiry,
    /// One executor per lane.
    pub executors: Vec<Executor>,
    pub sync: Sync,
    /// Compares the tables with the chain; see [`Self::reconcile`].
    pub reconciler: Reconciler,
    /// Idle unless data was lost.
    pub recoverer: Recoverer,
    /// Idle unless winnings are paid automatically.
    pub payer: Payer,
    /// Announces results to position holders; see [`Self::announce`].
    pub announcer: Announcer,
    /// Wakes open streams; see [`Self::watch`].
    pub watcher: Watcher,
    /// Reads the operator's kill switches.
    pub switches: SwitchReader,
    /// Writes the audit log.
    pub audit: AuditWriter,
    /// Checks the state that readiness reports; see [`Self::monitor`].
    pub monitor: HealthMonitor,
    /// Sends webhooks.
    pub sender: Arc<WebhookSender>,
}

impl Workers {
    /// Creates the workers of a process that uses the name `owner` in leases.
    pub fn of(ctx: &Ctx, executors: &[Signer], owner: &str) -> Self {
        let addresses = executors.iter().map(Signer::address).collect();
        let lanes = (0u16..).zip(executors);
        let executors = lanes.map(|(lane, signer)| {
            let executor = Executor::new(lane, signer.clone(), owner.to_owned());
            if ctx.config.sandbox { executor.checked_by(SandboxCheck) } else { executor }
        });
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
            monitor: HealthMonitor::default(),
            sender: Arc::new(sender()),
        }
    }

    /// Steps the workers until nothing is left to do.
    ///
    /// # Panics
    /// If a tick fails or work never ends.
    pub async fn run(&self, ctx: &Ctx) {
        self.try_run(ctx).await.unwrap();
    }

    /// Steps the workers until nothing is left to do, or a tick fails.
    ///
    /// # Errors
    /// The error of that tick.
    pub fn try_run<'a>(&'a self, ctx: &'a Ctx) -> BoxFuture<'a, Result<(), AppError>> {
        // Boxed, because a test that steps its workers many times would otherwise have many large
        // futures on its stack.
        Box::pin(async move {
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
                // A trade is rejected only after the next block was read, so run both again.
                self.execute_and_read(ctx).await?;
            }
            dispatch_due(ctx, &self.sender).await.map(drop)
        })
    }

    async fn execute_and_read(&self, ctx: &Ctx) -> Result<(), AppError> {
        for executor in &self.executors {
            until_idle(executor, ctx).await?;
        }
        until_idle(&self.sync, ctx).await
    }

    /// Steps the sync once.
    pub async fn sync_once(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        self.sync.tick(ctx).await
    }

    /// Steps the first executor once.
    pub async fn execute_once(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        self.executors[0].tick(ctx).await
    }

    /// Delivers due webhooks and returns the number of due queues.
    pub async fn dispatch(&self, ctx: &Ctx) -> usize {
        dispatch_due(ctx, &self.sender).await.unwrap()
    }

    /// Runs only the expiry of held trades.
    pub async fn expire(&self, ctx: &Ctx) {
        until_idle(&self.expiry, ctx).await.unwrap();
    }

    /// Runs only the executors.
    pub async fn execute(&self, ctx: &Ctx) {
        for executor in &self.executors {
            until_idle(executor, ctx).await.unwrap();
        }
    }

    /// Runs only the announcer.
    pub async fn announce(&self, ctx: &Ctx) {
        until_idle(&self.announcer, ctx).await.unwrap();
    }

    /// Runs only the watcher, which wakes open streams.
    pub async fn watch(&self, ctx: &Ctx) {
        until_idle(&self.watcher, ctx).await.unwrap();
    }

    /// Runs only the recovery.
    pub async fn recover(&self, ctx: &Ctx) {
        until_idle(&self.recoverer, ctx).await.unwrap();
    }

    /// Steps the reconciler once.
    pub async fn reconcile(&self, ctx: &Ctx) {
        self.reconciler.tick(ctx).await.unwrap();
    }

    /// Steps the health monitor once.
    pub async fn monitor(&self, ctx: &Ctx) {
        self.monitor.tick(ctx).await.unwrap();
    }

    /// Runs only the sync.
    pub async fn synchronise(&self, ctx: &Ctx) {
        until_idle(&self.sync, ctx).await.unwrap();
    }

    /// Releases all leases, as in an orderly shutdown.
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

/// A sender for local receivers. It trusts no certificate, because test receivers use plain HTTP.
fn sender() -> WebhookSender {
    let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    WebhookSender::with_tls(TargetPolicy::development(), Arc::<SystemResolver>::default(), tls)
}

async fn until_idle<W: Worker>(worker: &W, ctx: &Ctx) -> Result<(), AppError> {
    for _ in 0..MANY_TICKS {
        if worker.tick(ctx).await? == Progress::Idle {
            return Ok(());
        }
    }
    panic!("{} never comes to rest", worker.name());
}

/// Reports whether trades were claimed but neither signed nor rejected.
async fn trades_wait(ctx: &Ctx) -> Result<bool, AppError> {
    const SQL: &str = "SELECT 1 FROM trades WHERE status = 'validating' LIMIT 1";
    Ok(ctx.store.read((), |tx, ()| Box::pin(tx.exists(SQL, &[]))).await?)
}
