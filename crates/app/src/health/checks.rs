//! Runs the checks of readiness regularly and records their results as metrics, so that a failed one
//! is visible although nobody asks for readiness.

use async_trait::async_trait;

use super::readiness;
use crate::metrics::CheckName;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

pub struct CheckWatcher;

#[async_trait]
impl Worker for CheckWatcher {
    fn name(&self) -> &'static str {
        "check watcher"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let (found, replica) = tokio::join!(readiness(ctx), replica_lag(ctx));
        let metrics = &ctx.process.metrics;
        metrics.check(CheckName::Database, found.database.ok);
        metrics.check(CheckName::Chain, found.chain.ok);
        metrics.check(CheckName::RateLimiter, found.rate_limiter.ok);
        metrics.check(CheckName::Webhooks, found.webhooks.ok);
        if ctx.store.has_replica() {
            metrics.check(CheckName::Replica, replica.is_some());
        }
        if let Some(blocks) = replica {
            metrics.replica_lag(blocks);
        }
        Ok(Progress::Idle)
    }
}

/// Returns how many blocks the replica lacks, or `None` if it does not answer in time.
async fn replica_lag(ctx: &Ctx) -> Option<u64> {
    if !ctx.store.has_replica() {
        return None;
    }
    let counted = tokio::time::timeout(super::TIMEOUT, ctx.store.count_blocks_missing_in_replica()).await;
    counted.ok()?.ok()
}
