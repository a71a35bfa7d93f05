//! The parts that all processes share: database, chain and rate limiter. If one does not answer, every
//! process is degraded and none is unready, so that a load balancer keeps sending requests to them:
//! clients get problem documents instead of its error page, and what needs no dependency still works.

use super::{Degradation, Reason, TIMEOUT};
use crate::Ctx;

/// Asks each part, and notes those that do not answer in time. Returns whether the database does.
pub(super) async fn look(ctx: &Ctx) -> bool {
    let (database, chain, rate_limiter) = tokio::join!(
        answers(async { ctx.store.ping().await.is_ok() }),
        answers(async { ctx.chain.head().await.is_ok() }),
        answers(async { ctx.process.limits.ping().await.is_ok() }),
    );
    for (reason, is_up, detail) in [
        (Reason::DatabaseUnavailable, database, "This process does not reach the database."),
        (Reason::ChainUnavailable, chain, "No node of the chain answers."),
        (Reason::RateLimiterUnavailable, rate_limiter, "The storage of the rate limits does not answer."),
    ] {
        ctx.process.degradations.put(reason, (!is_up).then(|| Degradation::new(reason, detail)));
    }
    database
}

async fn answers(part: impl Future<Output = bool>) -> bool {
    tokio::time::timeout(TIMEOUT, part).await.unwrap_or(false)
}
