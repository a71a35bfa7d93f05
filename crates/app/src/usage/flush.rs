//! Adding what was counted to the database: by a worker every few seconds, and once more when the service stops.
//!
//! Every process adds to the rows of its keys' hours, and readers sum them. A process that dies loses what it has counted
//! since its last flush. A flush whose end is not known, since the connection was lost in its commit, is made again: then
//! these few seconds may be counted twice.

use store::StoreError;
use store::usage::KeyHour;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most keys' hours of one transaction.
const AT_ONCE: usize = 200;

/// The worker that flushes. Requests are still answered while workers stop: whoever stops the service flushes what they
/// leave.
#[derive(Debug, Default)]
pub struct Flusher;

impl Worker for Flusher {
    fn name(&self) -> &'static str {
        "usage flusher"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        flush(ctx).await?;
        Ok(Progress::Idle)
    }
}

/// Adds everything that this process has counted to the database. What cannot be added stays counted.
pub async fn flush(ctx: &Ctx) -> Result<(), AppError> {
    let _alone = ctx.usage.hold_readers().await;
    let mut left = ctx.usage.take();
    while !left.is_empty() {
        let batch: Vec<KeyHour> = left.drain(..left.len().min(AT_ONCE)).collect();
        let added: Result<(), StoreError> =
            ctx.store.write(batch.clone(), |tx, hours| Box::pin(store::usage::add(tx, hours))).await;
        if let Err(error) = added {
            ctx.usage.put_back(&batch);
            ctx.usage.put_back(&left);
            return Err(error.into());
        }
    }
    Ok(())
}
