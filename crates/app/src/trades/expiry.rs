//! Ends held trades whose confirmation window is over, and waiting trades whose key was revoked or
//! expired. Their reservations are released.
//!
//! This runs in every process without a lease. Confirms, executors that claim a trade and this
//! worker all use a compare-and-set on the status, so exactly one of them succeeds. After a crash
//! the next tick finds the same trades. Until then a confirm is rejected by the clock and the key,
//! and an executor rejects the trades that it claims.

use async_trait::async_trait;
use domain::time::MINUTE_MS;
use domain::trade::{Status, Transition};

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The maximum number of trades per tick.
const AT_ONCE: u32 = 100;
/// The time after a key's end during which its trades are looked up. It only ends them sooner:
/// later the executor rejects the trades that it claims, and held trades end with their window.
const LOOK_BACK_MS: i64 = 10 * MINUTE_MS;

/// The worker. It runs on a timer, because the end of a window sends no signal.
#[derive(Debug, Default)]
pub struct Expiry;

#[async_trait]
impl Worker for Expiry {
    fn name(&self) -> &'static str {
        "expiry"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        // During a recovery, a trade that waits here may already have executed on chain. The
        // recovery finds out.
        if ctx.process.switches.is_recovering() {
            return Ok(Progress::Idle);
        }
        let ended = end_with_keys(ctx).await?;
        let expired = expire_held(ctx).await?;
        Ok(if ended.max(expired) >= AT_ONCE as usize { Progress::More } else { Progress::Idle })
    }
}

/// Ends held trades whose window is over. Returns how many were due.
async fn expire_held(ctx: &Ctx) -> Result<usize, AppError> {
    let now = ctx.now();
    let expire = Transition::expire(Status::PendingConfirmation, now).map_err(AppError::internal)?;
    // Most ticks find nothing. Looking with a reader keeps the single writer free.
    let due =
        ctx.store.read(now, |tx, now| Box::pin(store::trades::list_unconfirmed(tx, *now, AT_ONCE))).await;
    let due = due?;
    let count = due.len();
    if count == 0 {
        return Ok(0);
    }
    ctx.store
        .write((due, expire), |tx, (due, expire)| {
            Box::pin(async move {
                for trade in due {
                    // Stale trades were confirmed, or expired by another process, since the read.
                    store::trades::apply(tx, trade, expire).await?;
                }
                Ok(())
            })
        })
        .await?;
    Ok(count)
}

/// Ends the trades of recently ended keys that no executor has claimed. Returns how many were
/// found.
async fn end_with_keys(ctx: &Ctx) -> Result<usize, AppError> {
    let now = ctx.now();
    let found = ctx
        .store
        .read((now.plus_ms(-LOOK_BACK_MS), now), |tx, (since, now)| {
            Box::pin(async move {
                let mut trades = Vec::new();
                for key in store::keys::list_ended(tx, *since, *now, AT_ONCE).await? {
                    let room = AT_ONCE.saturating_sub(trades.len() as u32);
                    trades.extend(store::trades::list_unclaimed(tx, key.user_id, key.id, room).await?);
                }
                Ok(trades)
            })
        })
        .await;
    let found = found?;
    let count = found.len();
    for trade in found {
        let end = Transition::end_with_key(trade.state.status(), now).map_err(AppError::internal)?;
        // One transaction per trade: an executor that claims many trades locks their rows in
        // another order, so a larger transaction could deadlock with it.
        ctx.store
            .write((trade, end), |tx, (trade, end)| Box::pin(store::trades::apply(tx, trade, end)))
            .await?;
    }
    Ok(count)
}
