//! Sends delegation changes, one per transaction.
//!
//! They are stored, sent and followed exactly like batches of trades, and share the executor's
//! nonces with them.

use alloy_primitives::B256;
use chain::{ChainError, Revert};
use domain::ids::BatchId;
use domain::time::MINUTE_MS;
use store::StoreError;
use store::batches::{Batch, BatchEnding, BatchKind};
use store::delegations::DelegationChange;
use store::leases::Lease;

use super::Executor;
use super::signing::{NewBatch, first_form};
use crate::{AppError, Ctx, delegations, lease};

/// The maximum number of open delegation changes per lane, in addition to the batches.
const MAX_IN_FLIGHT: usize = 2;
/// The delay before a change that the Gate rejects is tried again.
const REFUSED_MS: i64 = MINUTE_MS;

impl Executor {
    /// Sends a delegation change, or ends it if the chain needs no change. Returns whether it did
    /// either.
    pub(super) async fn change_next(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        change: DelegationChange,
    ) -> Result<bool, AppError> {
        if open.iter().filter(|batch| batch.kind == BatchKind::Delegation).count() >= MAX_IN_FLIGHT {
            return Ok(false);
        }
        let policy = ctx.chain.policy(change.account, change.key_index).await?;
        // The chain may already be as wanted, because the account's owner can change the policy
        // too.
        if !delegations::is_needed(&change.change, &policy) {
            let input = (lease.clone(), change.id, ctx.now());
            let ended: Result<(), AppError> = ctx
                .store
                .try_write(input, |tx, (lease, id, now)| {
                    Box::pin(async move {
                        lease::check(tx, lease).await?;
                        Ok(store::delegations::mark_not_needed(tx, *id, *now).await?)
                    })
                })
                .await;
            return ended.map(|()| true);
        }
        let Some(fees) = self.affordable_fees(ctx).await? else { return Ok(false) };
        let calldata = delegations::calldata(&change);
        let gate = ctx.chain.contracts().gate;
        let gas = match ctx.chain.estimate_gas(self.signer.address(), Some(gate), calldata.clone()).await {
            Ok(gas) => gas,
            Err(ChainError::Reverted(Revert::NotAuthorized))
                if self.hand_over_without_right(ctx, lease).await? =>
            {
                return Ok(true);
            }
            Err(ChainError::Reverted(reason)) => {
                return self.defer_change(ctx, lease, &change, &reason).await;
            }
            Err(error) => return Err(error.into()),
        };
        let batch = NewBatch {
            id: BatchId(ctx.uuid()),
            kind: BatchKind::Delegation,
            chain_nonce: self.next_nonce(ctx, open).await?,
            target: None,
            calldata: calldata.to_vec(),
            // Half of the estimate as a margin: the state may change between the estimate and the
            // execution.
            gas_limit: gas.saturating_add(gas / 2),
        };
        let batch = batch.of(self.lane, &self.signer, ctx.now());
        let form = first_form(ctx, &self.signer, &batch, fees)?;
        let stored: Result<bool, AppError> = ctx
            .store
            .try_write(
                (lease.clone(), batch.clone(), form.clone(), change.id),
                |tx, (lease, batch, form, id)| {
                    Box::pin(async move {
                        // Stored in one transaction before it is sent: the change is marked only if its
                        // signed bytes exist.
                        lease::check(tx, lease).await?;
                        // An operator may have removed the lane since this tick began.
                        if !store::lanes::may_sign(tx, batch.lane).await? {
                            return Ok(false);
                        }
                        if !store::delegations::mark_sent(tx, *id, batch.id, batch.created_at).await? {
                            return Ok(false);
                        }
                        store::batches::insert(tx, batch, form).await?;
                        Ok(true)
                    })
                },
            )
            .await;
        if stored? {
            self.send_stored(ctx, lease, &batch, &form).await?;
        }
        Ok(true)
    }

    /// Postpones a change that the Gate would reject, so that it burns no gas.
    async fn defer_change(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        change: &DelegationChange,
        reason: &Revert,
    ) -> Result<bool, AppError> {
        tracing::error!(key.id = %change.key_id, %reason, "the Gate rejects a change of a delegation");
        let now = ctx.now();
        let input = (lease.clone(), change.id, reason.to_string(), now.plus_ms(REFUSED_MS), now);
        let deferred: Result<(), AppError> = ctx
            .store
            .try_write(input, |tx, (lease, id, reason, until, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    Ok(store::delegations::defer(tx, *id, reason, *until, *now).await?)
                })
            })
            .await;
        deferred.map(|()| true)
    }
}

/// Records the result of the change that a batch carried.
pub(super) async fn conclude(
    tx: &mut store::Tx,
    batch_id: BatchId,
    ending: BatchEnding,
    tx_hash: Option<B256>,
    now: domain::Timestamp,
) -> Result<(), StoreError> {
    match (ending, tx_hash) {
        (BatchEnding::Mined, Some(tx_hash)) => {
            store::delegations::mark_mined(tx, batch_id, tx_hash, now).await
        }
        // The Gate rejected it although the estimate succeeded: do not retry at once.
        (BatchEnding::Reverted, _) => {
            let until = now.plus_ms(REFUSED_MS);
            store::delegations::requeue(tx, batch_id, BatchEnding::Reverted.as_str(), until, now).await
        }
        // Displaced: the change itself was not rejected, so it is retried at once.
        (ending, _) => store::delegations::requeue(tx, batch_id, ending.as_str(), now, now).await,
    }
}
