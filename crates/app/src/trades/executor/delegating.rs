//! The changes of delegations that travel beside the trades, one in a transaction: stored signed, sent and followed exactly
//! like batches of trades, in the same order of nonces.

use alloy_primitives::Address;
use chain::{ChainError, Revert};
use domain::ErrorCode;
use domain::ids::BatchId;
use domain::time::MINUTE_MS;
use store::StoreError;
use store::batches::{Batch, Ending, Kind};
use store::delegations::DelegationChange;
use store::leases::Lease;

use super::Executor;
use super::signing::{NewBatch, sign};
use crate::{AppError, Ctx, delegations, lease};

/// How many changes of one lane may be on their way at once, beyond the batches.
const MAX_IN_FLIGHT: usize = 2;
/// How long a change is left alone that the Gate refuses.
const REFUSED_MS: i64 = MINUTE_MS;

impl Executor {
    /// Sends a change of a delegation, or ends it if there is nothing to change; whether anything was done.
    pub(super) async fn change_next(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        change: DelegationChange,
    ) -> Result<bool, AppError> {
        if open.iter().filter(|batch| batch.kind == Kind::Delegation).count() >= MAX_IN_FLIGHT {
            return Ok(false);
        }
        let account: Address = change
            .account
            .parse()
            .map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
        let policy = ctx.chain.policy(account, change.key_index).await?;
        if !delegations::is_needed(&change.change, &policy) {
            let input = (lease.clone(), change.id, ctx.now());
            let ended: Result<(), AppError> = ctx
                .store
                .write(input, |tx, (lease, id, now)| {
                    Box::pin(async move {
                        lease::check(tx, lease).await?;
                        Ok(store::delegations::mark_not_needed(tx, *id, *now).await?)
                    })
                })
                .await;
            return ended.map(|()| true);
        }
        let Some(fees) = self.affordable_fees(ctx).await? else { return Ok(false) };
        let calldata = delegations::calldata(&change, account);
        let gate = ctx.chain.contracts().gate;
        let gas = match ctx.chain.estimate_gas(self.signer.address(), Some(gate), calldata.clone()).await {
            Ok(gas) => gas,
            Err(ChainError::Reverted(reason)) => {
                return self.defer_change(ctx, lease, &change, &reason).await;
            }
            Err(error) => return Err(error.into()),
        };
        let batch = NewBatch {
            id: BatchId(ctx.uuid()),
            kind: Kind::Delegation,
            chain_nonce: self.next_nonce(ctx, open).await?,
            calldata: calldata.to_vec(),
            gas_limit: gas.saturating_add(gas / 2),
        };
        let batch = batch.of(self.lane, &self.signer, ctx.now());
        let form = sign(ctx, &self.signer, &batch, fees)?;
        let raw = form.raw.clone();
        let stored: Result<bool, AppError> = ctx
            .store
            .write((lease.clone(), batch.clone(), form, change.id), |tx, (lease, batch, form, id)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    if !store::delegations::mark_sent(tx, *id, batch.id, batch.created_at).await? {
                        return Ok(false);
                    }
                    store::batches::insert(tx, batch, form).await?;
                    Ok(true)
                })
            })
            .await;
        if stored? {
            self.send_stored(ctx, lease, &batch, &raw).await?;
        }
        Ok(true)
    }

    /// Leaves a change alone for a while that the Gate would refuse, so that it burns no gas.
    async fn defer_change(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        change: &DelegationChange,
        reason: &Revert,
    ) -> Result<bool, AppError> {
        tracing::error!(key.id = %change.key_id, %reason, "the Gate refuses to change a delegation");
        let now = ctx.now();
        let input = (lease.clone(), change.id, reason.to_string(), now.plus_ms(REFUSED_MS), now);
        let deferred: Result<(), AppError> = ctx
            .store
            .write(input, |tx, (lease, id, reason, until, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    Ok(store::delegations::defer(tx, *id, reason, *until, *now).await?)
                })
            })
            .await;
        deferred.map(|()| true)
    }
}

/// Notes what became of the change that a batch carried.
pub(super) async fn conclude(
    tx: &mut store::Tx,
    batch_id: BatchId,
    ending: Ending,
    tx_hash: Option<&str>,
    now: domain::Timestamp,
) -> Result<(), StoreError> {
    match (ending, tx_hash) {
        (Ending::Mined, Some(tx_hash)) => store::delegations::mark_mined(tx, batch_id, tx_hash, now).await,
        // The Gate refused it after all: not at once again.
        (Ending::Reverted, _) => {
            let until = now.plus_ms(REFUSED_MS);
            store::delegations::requeue(tx, batch_id, Ending::Reverted.as_str(), until, now).await
        }
        (ending, _) => store::delegations::requeue(tx, batch_id, ending.as_str(), now, now).await,
    }
}
