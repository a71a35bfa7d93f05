//! Sends redemptions. The first lane that gets accounts carries them all, in batches of their own.
//!
//! They are stored, sent and followed exactly like batches of trades.

use chain::{Fees, calls};
use domain::ids::{BatchId, RedemptionId};
use store::batches::{Batch, BatchKind, FirstForm};
use store::leases::Lease;

use super::Executor;
use super::signing::{MOST_GAS, NewBatch, first_form};
use crate::redemptions::{self, ClaimDecisions, Sendable};
use crate::{AppError, Ctx, lease};

/// The maximum number of redemptions in one transaction.
const MAX_REDEMPTIONS: u32 = 100;

impl Executor {
    /// Sends the next batch of redemptions. Returns whether there was one.
    pub(super) async fn redeem_next(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
    ) -> Result<bool, AppError> {
        let (chain_id, now) = (ctx.chain.chain_id(), ctx.now());
        let claims = ctx
            .store
            .read((chain_id, now), |tx, (chain_id, now)| {
                Box::pin(store::redemptions::list_unsent(tx, *chain_id, *now, MAX_REDEMPTIONS))
            })
            .await;
        let claims = claims?;
        if claims.is_empty() {
            return Ok(false);
        }
        let Some(fees) = self.affordable_fees(ctx).await? else { return Ok(false) };
        let ClaimDecisions { send, later, spent } = redemptions::decide(ctx, claims).await?;
        // In a transaction of its own: these results are final even if signing fails below.
        if !later.is_empty() || !spent.is_empty() {
            let input = (lease.clone(), later, spent, now);
            let noted: Result<(), AppError> = ctx
                .store
                .try_write(input, |tx, (lease, later, spent, now)| {
                    Box::pin(async move {
                        lease::check(tx, lease).await?;
                        store::redemptions::defer(tx, later).await?;
                        redemptions::conclude(tx, spent, *now).await
                    })
                })
                .await;
            noted?;
        }
        if send.is_empty() {
            return Ok(false);
        }
        let (batch, form) = self.signed_redemptions(ctx, open, fees, &send).await?;
        let ids: Vec<RedemptionId> = send.into_iter().map(|(id, _)| id).collect();
        let stored: Result<(), AppError> = ctx
            .store
            .try_write((lease.clone(), batch.clone(), form.clone(), ids), |tx, (lease, batch, form, ids)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    store::batches::insert(tx, batch, form).await?;
                    // A redemption that was paid by another transaction in the meantime has ended.
                    // Its payment here does nothing.
                    store::redemptions::set_batch(tx, ids, batch.id, batch.created_at).await?;
                    Ok(())
                })
            })
            .await;
        stored?;
        self.send_stored(ctx, lease, &batch, &form).await?;
        Ok(true)
    }

    async fn signed_redemptions(
        &self,
        ctx: &Ctx,
        open: &[Batch],
        fees: Fees,
        send: &[Sendable],
    ) -> Result<(Batch, FirstForm), AppError> {
        let positions: Vec<_> = send.iter().map(|(_, position)| *position).collect();
        let calldata = calls::redeem_batch(&positions);
        let hub = ctx.chain.contracts().hub;
        let gas = ctx.chain.estimate_gas(self.signer.address(), Some(hub), calldata.clone()).await?;
        let batch = NewBatch {
            id: BatchId(ctx.uuid()),
            kind: BatchKind::Redemptions,
            chain_nonce: self.next_nonce(ctx, open).await?,
            target: None,
            calldata: calldata.to_vec(),
            gas_limit: gas_limit_of(gas),
        };
        let batch = batch.of(self.lane, &self.signer, ctx.now());
        let form = first_form(ctx, &self.signer, &batch, fees)?;
        Ok((batch, form))
    }
}

/// Returns the gas limit for an estimate. The hub skips a payment that runs out of gas, so half of the estimate is added.
fn gas_limit_of(estimate: u64) -> u64 {
    estimate.saturating_add(estimate / 2).min(MOST_GAS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_estimate_is_added_within_the_limit_of_a_transaction() {
        assert_eq!([6_000_000, 12_000_000, u64::MAX].map(gas_limit_of), [9_000_000, 16_777_216, 16_777_216]);
    }
}
