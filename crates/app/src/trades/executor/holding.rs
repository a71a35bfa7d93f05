//! The conditions under which trades are signed: what the chain asks for gas, and what the contracts' hourly volume cap leaves.
//! Trades that do not meet them wait, unsigned, and fail at their deadlines if that comes first.

use chain::Fees;
use domain::ids::TradeId;
use domain::trade::{Budget, HoldReason, Room};
use domain::{Timestamp, Usdc};
use store::Tx;
use store::leases::Lease;
use store::trades::Trade;

use super::Executor;
use crate::{AppError, Ctx, lease};

/// How long an executor waits before it looks again whether the chain's fees have fallen.
const FEES_PAUSE_MS: i64 = 1_000;

/// The conditions under which the next batch is signed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    /// What is offered for gas; `None` if the chain asks for more than the ceiling.
    pub fees: Option<Fees>,
    /// What the trades of the batch may move.
    pub room: Room,
}

impl Executor {
    /// The present conditions. `signed` is what trades move that are signed and may not be part of the Gate's count yet.
    pub(super) async fn conditions(&self, ctx: &Ctx, signed: Usdc) -> Result<Conditions, AppError> {
        let Some(fees) = self.affordable_fees(ctx).await? else {
            return Ok(Conditions { fees: None, room: Room::Nothing });
        };
        // Asked after `signed` was read: what is mined in between counts twice rather than not at all.
        let left = ctx.chain.hourly_volume().await?.left(ctx.now().s());
        let room =
            left.map_or(Room::Unlimited, |left| Room::Usdc(Usdc::from_atomic(left).saturating_sub(signed)));
        Ok(Conditions { fees: Some(fees), room })
    }

    /// The fees of a transaction that is signed now; `None` if the chain asks for more than the operator's ceiling. After that
    /// the chain is not asked again for a while.
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

    /// Leaves validated trades alone that would move more than is left: their volume was expected to be smaller.
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
            .write((lease.clone(), misfits, ctx.now()), |tx, (lease, misfits, now)| {
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

/// What trades may move that are not in the Gate's count yet: the signed ones of every lane, and what other lanes are about to
/// sign.
pub(super) async fn sum_in_flight(tx: &mut Tx, lane: u16, lanes: u16) -> Result<Usdc, store::StoreError> {
    let mut sum = Usdc::ZERO;
    for of in 0..lanes.max(1) {
        let signed = store::trades::sum_signed(tx, of).await?;
        let validating = if of == lane { Usdc::ZERO } else { store::trades::sum_validating(tx, of).await? };
        sum = [signed, validating].into_iter().fold(sum, |sum, usdc| sum.checked_add(usdc).unwrap_or(MOST));
    }
    Ok(sum)
}

const MOST: Usdc = Usdc::from_atomic(i64::MAX as u64);

/// Sorts trades into those that may go on, at most `limit`, and the ids of those that are held back. A trade whose deadline has
/// passed goes on: it fails.
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
        if trade.deadline <= now || budget.admit(&trade.account, trade.volume) {
            admitted.push(trade);
        } else {
            held.push(trade.id);
        }
    }
    (admitted, held)
}
