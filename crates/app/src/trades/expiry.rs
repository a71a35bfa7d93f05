//! The expiry of held trades: fails those whose confirmation window is over, and gives back what they had set aside.
//!
//! Any process may do it at any time. A confirm that comes at the same instant and this move are both compare-and-sets on
//! `pending_confirmation`, so exactly one of them happens. A crash leaves trades that the next tick finds again; until
//! then a confirm is refused by the clock.

use domain::ErrorCode;
use domain::trade::{Status, Transition};

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most trades of one tick.
const AT_ONCE: u32 = 100;

/// The expiry's worker. A window's end sends no signal: the timer wakes it.
#[derive(Debug, Default)]
pub struct Expiry;

impl Worker for Expiry {
    fn name(&self) -> &'static str {
        "expiry"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let now = ctx.now();
        let expire = Transition::expire(Status::PendingConfirmation, now)
            .map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
        // Most ticks find nothing; a look by a reader keeps the writer free of them.
        let due: Result<_, store::StoreError> =
            ctx.store.read(now, |tx, now| Box::pin(store::trades::list_unconfirmed(tx, *now, AT_ONCE))).await;
        let due = due?;
        if due.is_empty() {
            return Ok(Progress::Idle);
        }
        let is_full = due.len() >= AT_ONCE as usize;
        let expired: Result<(), store::StoreError> = ctx
            .store
            .write((due, expire), |tx, (due, expire)| {
                Box::pin(async move {
                    for trade in due {
                        // A stale one was confirmed, or expired by another process.
                        store::trades::apply(tx, trade, expire).await?;
                    }
                    Ok(())
                })
            })
            .await;
        expired?;
        Ok(if is_full { Progress::More } else { Progress::Idle })
    }
}
