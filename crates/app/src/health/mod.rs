//! Readiness: whether the service's dependencies respond, and which problems are known.

mod checks;
pub mod clock;
mod file;
pub mod gas;
mod monitor;
mod pools;
mod shared;
mod storage;
mod unled;
mod workers;

use std::time::Duration;

use domain::Timestamp;
use store::{StoreError, Tx};

pub use crate::process::degradations::{Degradation, Reason};
pub use crate::process::serving::{ServingFault, Storage};
pub use checks::CheckWatcher;
pub use clock::ClockWatcher;
pub use monitor::HealthMonitor;
pub use pools::PoolWatcher;
pub use storage::StorageWatcher;

use crate::Ctx;
use crate::webhooks::DISPATCHER_SIGN as SIGN;

/// The time that a dependency has to respond.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The time that an event may wait without any dispatcher.
const UNDISPATCHED_MS: i64 = 10_000;

/// The result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// The dependency responded in time.
    pub ok: bool,
    pub latency_ms: i64,
}

/// The results of all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub database: Check,
    /// The chain responds, and no problem stops trading.
    pub chain: Check,
    /// The storage of the rate limits.
    pub rate_limiter: Check,
    /// The webhook dispatcher: whether one runs in any process, and as the latency, how long the
    /// oldest due event has waited. Failing receivers do not count, because they belong to
    /// customers.
    pub webhooks: Check,
    pub degraded: Vec<Degradation>,
}

impl Readiness {
    /// Returns whether all checks passed.
    pub fn is_ready(&self) -> bool {
        let checks = [self.database, self.chain, self.rate_limiter, self.webhooks];
        checks.iter().all(|check| check.ok)
    }
}

/// Runs all checks concurrently.
pub async fn readiness(ctx: &Ctx) -> Readiness {
    let (database, chain, rate_limiter, webhooks) = tokio::join!(
        check(ctx, async { ctx.store.ping().await.is_ok() }),
        check(ctx, async { ctx.chain.head().await.is_ok() }),
        check(ctx, async { ctx.process.limits.ping().await.is_ok() }),
        webhooks(ctx),
    );
    let mut degraded = known_problems(ctx);
    // The checks have just asked these parts.
    degraded.retain(|degradation| !degradation.reason.has_check());
    let mut readiness = Readiness { database, chain, rate_limiter, webhooks, degraded };
    readiness.chain.ok &= !readiness.degraded.iter().any(|degradation| degradation.stops_trading);
    // What was found in the background: a check here would cost a commit for each request.
    readiness.database.ok &= accepts_writes(ctx, Storage::Database);
    readiness.chain.ok &= accepts_writes(ctx, Storage::Chain);
    readiness
}

/// Returns whether the last write to this storage worked.
fn accepts_writes(ctx: &Ctx, storage: Storage) -> bool {
    let is_rejected = match storage {
        Storage::Database => ctx.process.degradations.has(Reason::DatabaseRejectsWrites),
        Storage::Chain => false,
    };
    !is_rejected && !ctx.process.serving.has_storage_fault(storage)
}

/// Returns the problems that this process knows of: those of the service, and of its own workers. Asks
/// nobody.
pub fn known_problems(ctx: &Ctx) -> Vec<Degradation> {
    let mut degraded = ctx.process.degradations.list();
    degraded.extend(workers::degradations(&ctx.process.workers, ctx.now()));
    degraded
}

async fn check(ctx: &Ctx, answers: impl Future<Output = bool>) -> Check {
    let began = ctx.now();
    let ok = tokio::time::timeout(TIMEOUT, answers).await.unwrap_or(false);
    Check { ok, latency_ms: ctx.now().since_ms(began) }
}

/// Judges by the database, because the dispatcher may run in another process.
async fn webhooks(ctx: &Ctx) -> Check {
    let now = ctx.now();
    let found = ctx.store.try_read(now, |tx, now| Box::pin(Dispatching::read(tx, *now)));
    let found: Option<Result<Dispatching, StoreError>> = tokio::time::timeout(TIMEOUT, found).await.ok();
    let Some(Ok(found)) = found else { return Check { ok: false, latency_ms: ctx.now().since_ms(now) } };
    let waited_ms = found.oldest_due.map_or(0, |due| now.since_ms(due));
    // Without an event that waits, nobody misses a dispatcher that is being restarted.
    Check { ok: found.is_announced || waited_ms <= UNDISPATCHED_MS, latency_ms: waited_ms }
}

/// The state of the webhook deliveries of all processes.
struct Dispatching {
    oldest_due: Option<Timestamp>,
    /// A dispatcher runs in some process.
    is_announced: bool,
}

impl Dispatching {
    async fn read(tx: &mut Tx, now: Timestamp) -> Result<Self, StoreError> {
        let oldest_due = store::webhooks::find_oldest_due(tx, now).await?;
        let leases = store::leases::list(tx).await?;
        let is_announced = leases.iter().any(|(name, until)| name == SIGN && *until > now);
        Ok(Self { oldest_due, is_announced })
    }
}
