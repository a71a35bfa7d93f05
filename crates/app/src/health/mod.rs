//! Whether the parts that the service depends on answer, and what is wrong although they do.

mod degradation;
mod monitor;
mod workers;

use std::time::Duration;

use domain::Timestamp;
use store::StoreError;

pub use degradation::{Degradation, Degradations, Reason};
pub use monitor::HealthMonitor;

use crate::Ctx;

/// How long a part may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// One part's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Whether it answered in time.
    pub ok: bool,
    /// How long it took.
    pub latency_ms: i64,
}

/// Every part's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The database.
    pub database: Check,
    /// The chain: whether it answers, and nothing keeps trades from being completed.
    pub chain: Check,
    /// Where the limits stand.
    pub rate_limiter: Check,
    /// The deliveries: whether this process looks after them, and for how long the one waits that is due for longest. How
    /// receivers fare says nothing of it: they are the customers'.
    pub webhooks: Check,
    /// What is wrong with the service although everything answers.
    pub degraded: Vec<Degradation>,
}

impl Readiness {
    /// Whether the service can do its work.
    pub fn is_ready(&self) -> bool {
        let checks = [self.database, self.chain, self.rate_limiter, self.webhooks];
        checks.iter().all(|check| check.ok)
    }
}

/// Asks every part at once.
pub async fn readiness(ctx: &Ctx) -> Readiness {
    let (database, chain, rate_limiter, webhooks) = tokio::join!(
        check(ctx, async { ctx.store.ping().await.is_ok() }),
        check(ctx, async { ctx.chain.head().await.is_ok() }),
        check(ctx, async { ctx.limits.ping().await.is_ok() }),
        webhooks(ctx),
    );
    let mut degraded = ctx.degradations.list();
    degraded.extend(workers::degradations(&ctx.workers, ctx.now()));
    let mut readiness = Readiness { database, chain, rate_limiter, webhooks, degraded };
    readiness.chain.ok &= !readiness.degraded.iter().any(|degradation| degradation.stops_trading);
    readiness
}

async fn check(ctx: &Ctx, answers: impl Future<Output = bool>) -> Check {
    let began = ctx.now();
    let ok = tokio::time::timeout(TIMEOUT, answers).await.unwrap_or(false);
    Check { ok, latency_ms: ctx.now().since_ms(began) }
}

async fn webhooks(ctx: &Ctx) -> Check {
    let now = ctx.now();
    let oldest = ctx.store.read(now, |tx, now| Box::pin(store::webhooks::find_oldest_due(tx, *now)));
    let oldest: Option<Result<Option<Timestamp>, StoreError>> =
        tokio::time::timeout(TIMEOUT, oldest).await.ok();
    let Some(Ok(oldest)) = oldest else { return Check { ok: false, latency_ms: ctx.now().since_ms(now) } };
    Check { ok: ctx.dispatching.is_alive(now), latency_ms: oldest.map_or(0, |due| now.since_ms(due)) }
}
