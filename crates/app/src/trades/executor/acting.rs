//! Sends owner acts, one per transaction.
//!
//! They are stored, sent and followed exactly like batches of trades, and share the executor's
//! nonces with them.

use alloy_primitives::{Address, B256};
use chain::Call;
use domain::Timestamp;
use domain::ids::BatchId;
use store::batches::{Batch, BatchEnding, BatchKind};
use store::leases::Lease;
use store::owner_acts::{OwnerAct, OwnerActEnding};
use store::{StoreError, Tx};

use super::Executor;
use super::signing::{NewBatch, first_form};
use crate::owner_acts::{ActDecision, decide, refresh_owners};
use crate::{AppError, Ctx, keys, lease};

/// The maximum number of open acts per lane, in addition to the batches.
const MAX_IN_FLIGHT: usize = 2;
/// The delay before an act that waits for the chain is looked at again.
const WAIT_MS: i64 = 1_000;

/// The next step of an act.
#[derive(Clone)]
pub(super) enum ActStep {
    End(OwnerActEnding),
    /// It is sent again later.
    Requeue {
        reason: String,
        try_after: Timestamp,
    },
}

impl ActStep {
    fn wait(reason: String, now: Timestamp) -> Self {
        Self::Requeue { reason, try_after: now.plus_ms(WAIT_MS) }
    }

    pub(super) async fn store(&self, tx: &mut Tx, act: &OwnerAct, now: Timestamp) -> Result<(), StoreError> {
        match self {
            Self::End(ending) => store::owner_acts::end(tx, act.id, ending, now).await,
            Self::Requeue { reason, try_after } => {
                store::owner_acts::requeue(tx, act.id, reason, *try_after).await
            }
        }
    }

    /// Follows the step up after it was stored.
    pub(super) async fn finish(&self, ctx: &Ctx, act: &OwnerAct) {
        match self {
            Self::End(OwnerActEnding::Done { .. }) => {
                if let Some(key) = act.caps_key_id {
                    keys::forget(ctx, key);
                }
                refresh_owners(ctx, act).await;
            }
            Self::End(ending) => tracing::warn!(act.id = %act.id, ?ending, "an owner's act was not executed"),
            Self::Requeue { .. } => {}
        }
    }
}

impl Executor {
    /// Sends an act, or ends it if the chain has decided about it. Returns whether it did either.
    pub(super) async fn act_next(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        act: OwnerAct,
    ) -> Result<bool, AppError> {
        if open.iter().filter(|batch| batch.kind == BatchKind::OwnerAct).count() >= MAX_IN_FLIGHT {
            return Ok(false);
        }
        let step = match decide(ctx, &act, self.signer.address()).await {
            ActDecision::Send { call, gas } => {
                return self.send_act(ctx, lease, open, &act, call, gas).await;
            }
            ActDecision::End(ending) => ActStep::End(ending),
            ActDecision::Wait(reason) => ActStep::wait(reason, ctx.now()),
        };
        let input = (lease.clone(), act, step, ctx.now());
        let stored: Result<(OwnerAct, ActStep), AppError> = ctx
            .store
            .try_write(input, |tx, (lease, act, step, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    step.store(tx, act, *now).await?;
                    Ok((act.clone(), step.clone()))
                })
            })
            .await;
        let (act, step) = stored?;
        step.finish(ctx, &act).await;
        Ok(true)
    }

    async fn send_act(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        act: &OwnerAct,
        call: Call,
        gas: u64,
    ) -> Result<bool, AppError> {
        let Some(fees) = self.affordable_fees(ctx).await? else { return Ok(false) };
        let batch = NewBatch {
            id: BatchId(ctx.uuid()),
            kind: BatchKind::OwnerAct,
            chain_nonce: self.next_nonce(ctx, open).await?,
            target: Some(call.target),
            calldata: call.data.to_vec(),
            // Half of the estimate as a margin: the state may change between the estimate and the
            // execution.
            gas_limit: gas.saturating_add(gas / 2),
        };
        let batch = batch.of(self.lane, &self.signer, ctx.now());
        let form = first_form(ctx, &self.signer, &batch, fees)?;
        let stored: Result<bool, AppError> = ctx
            .store
            .try_write(
                (lease.clone(), batch.clone(), form.clone(), act.id),
                |tx, (lease, batch, form, id)| {
                    Box::pin(async move {
                        // Stored in one transaction before it is sent: the act is marked only if its
                        // signed bytes exist.
                        lease::check(tx, lease).await?;
                        // An operator may have removed the lane since this tick began.
                        if !store::lanes::may_sign(tx, batch.lane).await? {
                            return Ok(false);
                        }
                        if !store::owner_acts::mark_sent(tx, *id, batch.id, form.hash()).await? {
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
}

/// Decides about the act that a batch carried, after the batch has ended. `None` if the act has
/// ended before.
pub(super) async fn step_after(
    ctx: &Ctx,
    executor: Address,
    batch_id: BatchId,
    ending: BatchEnding,
    tx_hash: Option<B256>,
) -> Result<Option<(OwnerAct, ActStep)>, AppError> {
    let carried =
        ctx.store.read(batch_id, |tx, id| Box::pin(store::owner_acts::find_of_batch(tx, *id))).await?;
    let Some(act) = carried else { return Ok(None) };
    let now = ctx.now();
    let step = match (ending, tx_hash) {
        (BatchEnding::Mined, Some(tx_hash)) => ActStep::End(OwnerActEnding::Done { tx_hash }),
        (BatchEnding::Reverted, _) => match decide(ctx, &act, executor).await {
            ActDecision::End(ending) => ActStep::End(ending),
            ActDecision::Wait(reason) => ActStep::wait(reason, now),
            // It would succeed now, because the state has changed since.
            ActDecision::Send { .. } => ActStep::wait(ending.as_str().to_owned(), now),
        },
        // The act itself was not rejected, so it is sent again at once.
        (ending, _) => ActStep::Requeue { reason: ending.as_str().to_owned(), try_after: now },
    };
    Ok(Some((act, step)))
}
