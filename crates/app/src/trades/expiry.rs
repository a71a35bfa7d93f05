//! The ends that trades come to by the clock and by their keys: held trades whose confirmation window is over, and trades
//! that wait while their key is revoked or expires. What they had set aside is given back.
//!
//! Any process may do it at any time. A confirm that comes at the same instant, an executor that claims the trade, and this
//! move are all compare-and-sets on the status, so exactly one of them happens. A crash leaves trades that the next tick
//! finds again; until then a confirm is refused by the clock and by the key, and the executor rejects what it claims.

use domain::ErrorCode;
use domain::time::MINUTE_MS;
use domain::trade::{Status, Transition};
use store::StoreError;
use store::trades::Trade;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most trades of one tick.
const AT_ONCE: u32 = 100;
/// For how long the trades of a key that has ended are looked for. It only makes them end at once: later the executor rejects
/// those that it claims, and held ones end with their window.
const LOOK_BACK_MS: i64 = 10 * MINUTE_MS;

/// The expiry's worker. A window's end sends no signal: the timer wakes it.
#[derive(Debug, Default)]
pub struct Expiry;

impl Worker for Expiry {
    fn name(&self) -> &'static str {
        "expiry"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        // A trade that waits here may have been made on chain, which the recovery finds out.
        if ctx.switches.is_recovering() {
            return Ok(Progress::Idle);
        }
        let ended = end_with_keys(ctx).await?;
        let expired = expire_held(ctx).await?;
        Ok(if ended.max(expired) >= AT_ONCE as usize { Progress::More } else { Progress::Idle })
    }
}

/// Fails held trades whose window is over; how many there were.
async fn expire_held(ctx: &Ctx) -> Result<usize, AppError> {
    let now = ctx.now();
    let expire = Transition::expire(Status::PendingConfirmation, now)
        .map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
    // Most ticks find nothing; a look by a reader keeps the writer free of them.
    let due: Result<Vec<Trade>, StoreError> =
        ctx.store.read(now, |tx, now| Box::pin(store::trades::list_unconfirmed(tx, *now, AT_ONCE))).await;
    let due = due?;
    let count = due.len();
    if count == 0 {
        return Ok(0);
    }
    let expired: Result<(), StoreError> = ctx
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
    Ok(count)
}

/// Ends the trades of keys that were revoked or have expired of late, unless an executor has claimed them; how many there
/// were.
async fn end_with_keys(ctx: &Ctx) -> Result<usize, AppError> {
    let now = ctx.now();
    let found: Result<Vec<Trade>, StoreError> = ctx
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
        let end = Transition::end_with_key(trade.state.status(), now)
            .map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
        // One at a time: an executor that claims many of them locks their rows in another order.
        let ended: Result<_, StoreError> = ctx
            .store
            .write((trade, end), |tx, (trade, end)| Box::pin(store::trades::apply(tx, trade, end)))
            .await;
        ended?;
    }
    Ok(count)
}
