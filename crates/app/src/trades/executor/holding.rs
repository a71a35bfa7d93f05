//! The conditions for signing trades: the chain's gas fees and the rest of the contracts' hourly
//! volume cap.
//!
//! Trades that do not meet them stay unsigned and fail at their deadlines.

use chain::Fees;
use domain::ids::TradeId;
use domain::trade::{Budget, HoldReason, Room};
use domain::{Timestamp, Usdc};
use store::leases::Lease;
use store::trades::Trade;

use super::Executor;
use crate::{AppError, Ctx, lease};

/// The delay before fees above the ceiling are read again.
const FEES_PAUSE_MS: i64 = 1_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    /// The fees to offer. `None` if the chain asks for more than the ceiling.
    pub fees: Option<Fees>,
    /// The volume that the batch's trades may move.
    pub room: Room,
    /// Whether the Gate has this executor.
    pub is_executor: bool,
}

impl Executor {
    /// Returns the current conditions. `signed` is the volume of signed trades that the Gate may
    /// not have counted yet.
    pub(super) async fn conditions(&self, ctx: &Ctx, signed: Usdc) -> Result<Conditions, AppError> {
        let Some(fees) = self.affordable_fees(ctx).await? else {
            return Ok(Conditions { fees: None, room: Room::Nothing, is_executor: true });
        };
        // The caller read `signed` before this. A trade that is mined in between is counted twice
        // rather than not at all.
        let volume = ctx.chain.executor_volume(self.signer.address()).await?;
        let left = volume.left(ctx.now().s());
        let room =
            left.map_or(Room::Unlimited, |left| Room::Usdc(Usdc::from_atomic(left).saturating_sub(signed)));
        // The Gate has no executor with a cap of 0: lowering the cap to 0 removes it.
        Ok(Conditions { fees: Some(fees), room, is_executor: volume.cap_usdc_atomic > 0 })
    }

    /// Returns the fees for a transaction that is signed now. `None` if the chain asks for more
    /// than the operator's ceiling; then the chain is not asked again for [`FEES_PAUSE_MS`].
    pub(super) async fn affordable_fees(&self, ctx: &Ctx) -> Result<Option<Fees>, AppError> {
        let now = ctx.now();
        if self.fees_pause.lock().is_some_and(|until| now < until) {
            return Ok(None);
        }
        let asked = ctx.chain.fees().await?;
        let fees = asked.within(ctx.max_fee_per_gas());
        if fees.is_none() {
            let (lane, price) = (self.lane, asked.price());
            tracing::warn!(lane, fee.wei = %price, "transactions wait: the chain's fees are above the ceiling");
        }
        *self.fees_pause.lock() = fees.is_none().then(|| now.plus_ms(FEES_PAUSE_MS));
        Ok(fees)
    }

    /// Marks claimed trades as waiting that would move more than the remaining volume. Their stored
    /// volume was an estimate and is updated.
    pub(super) async fn hold_misfits(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        misfits: Vec<(TradeId, Usdc)>,
    ) -> Result<(), AppError> {
        if misfits.is_empty() {
            return Ok(());
        }
        ctx.store
            .try_write((lease.clone(), misfits, ctx.now()), |tx, (lease, misfits, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    for (id, volume) in misfits {
                        store::trades::put_volume(tx, *id, *volume).await?;
                        store::trades::hold(tx, &[*id], HoldReason::HourlyVolume, *now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}

/// Splits trades into at most `limit` that may go on, and the ids of those that wait.
pub(super) fn admit(
    trades: Vec<Trade>,
    limit: usize,
    budget: &mut Budget,
    now: Timestamp,
) -> (Vec<Trade>, Vec<TradeId>) {
    let (mut admitted, mut held) = (Vec::new(), Vec::new());
    for trade in trades {
        if admitted.len() >= limit {
            break;
        }
        // A trade past its deadline goes on, because it ends as failed in this tick.
        if trade.deadline <= now || budget.admit(trade.account, trade.volume) {
            admitted.push(trade);
        } else {
            held.push(trade.id);
        }
    }
    (admitted, held)
}
