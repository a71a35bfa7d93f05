//! The watcher of this process's database connections. It uses none of them unless a pool stalls, so
//! that it also works while they are used up.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The time that a stalled pool, or the database outside of it, has to give a connection. Shorter
/// than requests wait, so that the next look is soon.
const TIMEOUT: Duration = Duration::from_secs(2);

pub struct PoolWatcher;

#[async_trait]
impl Worker for PoolWatcher {
    fn name(&self) -> &'static str {
        "pool watcher"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let look = || ctx.process.serving.note_pools(&ctx.store.pools(), ctx.now());
        look();
        let stalled = ctx.process.serving.stalled_pools();
        if !stalled.is_empty() {
            // An unready process gets no requests, so nobody else would find that a pool has
            // recovered.
            let tries = stalled.iter().map(|pool| answers(ctx.store.try_pool(pool)));
            let (_, is_reachable) = tokio::join!(join_all(tries), answers(ctx.store.connect_outside()));
            ctx.process.serving.note_database(is_reachable);
            look();
        }
        Ok(Progress::Idle)
    }
}

async fn answers<E>(attempt: impl Future<Output = Result<(), E>>) -> bool {
    tokio::time::timeout(TIMEOUT, attempt).await.is_ok_and(|outcome| outcome.is_ok())
}
