//! Whether the parts that the service stands on answer.

use std::time::Duration;

use domain::Timestamp;
use store::StoreError;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The database.
    pub database: Check,
    /// The chain.
    pub chain: Check,
    /// Where the limits stand.
    pub rate_limiter: Check,
    /// The deliveries: whether this process looks after them, and for how long the one waits that is due for longest. How
    /// receivers fare says nothing of it: they are the customers'.
    pub webhooks: Check,
}

/// Asks every part at once.
pub async fn readiness(ctx: &Ctx) -> Readiness {
    let (database, chain, rate_limiter, webhooks) = tokio::join!(
        check(ctx, async { ctx.store.ping().await.is_ok() }),
        check(ctx, async { ctx.chain.head().await.is_ok() }),
        check(ctx, async { ctx.limits.ping().await.is_ok() }),
        webhooks(ctx),
    );
    Readiness { database, chain, rate_limiter, webhooks }
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
