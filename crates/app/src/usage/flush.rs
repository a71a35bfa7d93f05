//! Writes usage counts to the database, every few seconds and at shutdown.
//!
//! Every process adds to the rows of its keys' hours, and readers sum them. A process that crashes
//! loses the counts since its last flush. A flush whose commit result is unknown is repeated, so
//! that these few seconds may be counted twice.

use async_trait::async_trait;
use store::usage::KeyHour;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The maximum number of rows per transaction.
const AT_ONCE: usize = 200;

/// The worker that flushes counts. Requests are still served while workers stop, so the shutdown
/// must flush once more.
#[derive(Debug, Default)]
pub struct Flusher;

#[async_trait]
impl Worker for Flusher {
    fn name(&self) -> &'static str {
        "usage flusher"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        flush(ctx).await?;
        Ok(Progress::Idle)
    }
}

/// Adds all counts of this process to the database. Counts that could not be written stay in
/// memory.
pub async fn flush(ctx: &Ctx) -> Result<(), AppError> {
    let _alone = ctx.process.usage.hold_readers().await;
    // Readers wait, so that none of them finds a count in neither place or in both.
    let mut left = ctx.process.usage.take();
    while !left.is_empty() {
        let batch: Vec<KeyHour> = left.drain(..left.len().min(AT_ONCE)).collect();
        let added = ctx.store.write(batch.clone(), |tx, hours| Box::pin(store::usage::add(tx, hours))).await;
        if let Err(error) = added {
            ctx.process.usage.put_back(&batch);
            ctx.process.usage.put_back(&left);
            return Err(error.into());
        }
    }
    Ok(())
}
