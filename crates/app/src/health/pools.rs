//! The watcher of this process's database connections. It uses none, so that it also works while
//! they are used up.

use async_trait::async_trait;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

pub struct PoolWatcher;

#[async_trait]
impl Worker for PoolWatcher {
    fn name(&self) -> &'static str {
        "pool watcher"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        ctx.process.serving.note_pools(&ctx.store.pools(), ctx.now());
        Ok(Progress::Idle)
    }
}
