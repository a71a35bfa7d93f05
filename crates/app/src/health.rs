//! Whether the parts that the service stands on answer.

use std::time::Duration;

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
}

/// Asks every part at once.
pub async fn readiness(ctx: &Ctx) -> Readiness {
    let (database, chain, rate_limiter) = tokio::join!(
        check(ctx, async { ctx.store.ping().await.is_ok() }),
        check(ctx, async { ctx.chain.head().await.is_ok() }),
        check(ctx, async { ctx.limits.ping().await.is_ok() }),
    );
    Readiness { database, chain, rate_limiter }
}

async fn check(ctx: &Ctx, answers: impl Future<Output = bool>) -> Check {
    let began = ctx.now();
    let ok = tokio::time::timeout(TIMEOUT, answers).await.unwrap_or(false);
    Check { ok, latency_ms: ctx.now().since_ms(began) }
}
