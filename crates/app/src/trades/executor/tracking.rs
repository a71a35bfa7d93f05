//! Follows a signed batch until it is in a final block: looks for receipts, then sends the same
//! bytes again, then raises the fees.

use alloy_primitives::B256;
use chain::{Fees, SendOutcome};
use domain::ids::BatchId;
use domain::trade::TraceEvent;
use store::batches::{Batch, BatchEnding, BatchKind, FirstForm, SignedForm};
use store::leases::Lease;

use super::signing::first_form;
use super::{Executor, Seen, acting, delegating};
use crate::{AppError, Ctx, lease};

/// The highest accepted multiple of the chain's current fees.
const MOST_FEE_RAISE: u128 = 10;

/// The state of a batch on chain.
enum BatchProgress {
    Final(Final),
    Mined,
    Unseen,
}

/// The end of a batch. `tx_hash` is set if one of its forms was mined.
struct Final {
    ending: BatchEnding,
    tx_hash: Option<B256>,
    /// The gas used and its price in wei.
    gas: Option<(u64, u128)>,
}

impl Executor {
    /// Advances a batch by one step. Returns whether it has ended.
    pub(super) async fn advance(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        seen: Seen,
    ) -> Result<bool, AppError> {
        let forms = ctx.store.read(batch.id, |tx, id| Box::pin(store::batches::list_forms(tx, *id))).await;
        let forms = forms?;
        match self.find_progress(ctx, batch, &forms, seen).await? {
            BatchProgress::Final(end) => {
                self.end(ctx, lease, batch, end).await?;
                self.taken.lock().remove(&batch.id);
                Ok(true)
            }
            BatchProgress::Mined => {
                self.taken.lock().insert(batch.id);
                Ok(false)
            }
            BatchProgress::Unseen => {
                self.send_again(ctx, lease, batch, &forms).await?;
                Ok(false)
            }
        }
    }

    /// Looks for a receipt of each form.
    ///
    /// `final_nonce` must be read before the receipts. Only then does a count above the batch's
    /// nonce, with no receipt of any form, mean that another transaction used the nonce. Only the
    /// count at a final block proves this, because backends of a node may differ in newer blocks.
    async fn find_progress(
        &self,
        ctx: &Ctx,
        batch: &Batch,
        forms: &[SignedForm],
        Seen { final_block, final_nonce }: Seen,
    ) -> Result<BatchProgress, AppError> {
        for form in forms {
            if let Some(receipt) = ctx.chain.receipt(form.hash).await? {
                let ending = if receipt.success { BatchEnding::Mined } else { BatchEnding::Reverted };
                let is_final = final_block.is_some_and(|last| receipt.block_number <= last);
                let gas = Some((receipt.gas_used, receipt.effective_gas_price));
                let end = || Final { ending, tx_hash: Some(form.hash), gas };
                return Ok(if is_final { BatchProgress::Final(end()) } else { BatchProgress::Mined });
            }
        }
        Ok(if final_nonce > batch.chain_nonce {
            BatchProgress::Final(Final { ending: BatchEnding::Displaced, tx_hash: None, gas: None })
        } else {
            BatchProgress::Unseen
        })
    }

    async fn end(&self, ctx: &Ctx, lease: &Lease, batch: &Batch, end: Final) -> Result<(), AppError> {
        if end.ending != BatchEnding::Mined {
            let (id, ending) = (batch.id, end.ending.as_str());
            tracing::warn!(batch.id = %id, ending, "a batch ended without executing its content");
        }
        let act = match batch.kind {
            BatchKind::OwnerAct => {
                acting::step_after(ctx, batch.executor, batch.id, end.ending, end.tx_hash).await?
            }
            _ => None,
        };
        let gas_used = end.gas.filter(|_| batch.kind == BatchKind::Trades).map(|(used, _)| used);
        let input = (lease.clone(), batch.id, batch.kind, end, act.clone(), ctx.now());
        let stored: Result<(), AppError> = ctx
            .store
            .try_write(input, |tx, (lease, id, kind, end, act, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    // False if the batch had already ended: its gas must not be counted twice.
                    let is_new = store::batches::mark_ended(tx, *id, end.ending, *now).await?;
                    if let (BatchKind::Trades, true, Some((gas_used, wei_per_gas))) = (kind, is_new, end.gas)
                    {
                        store::usage::add_batch_gas(tx, *id, gas_used, wei_per_gas, *now).await?;
                    }
                    match kind {
                        // In the same transaction as the end, so that no trade stays in a batch
                        // that will never carry it.
                        BatchKind::Trades if end.ending != BatchEnding::Mined => {
                            let lost = TraceEvent::batch_lost(*id, end.ending.as_str(), *now);
                            store::trades::clear_batch(tx, *id, &lost).await?;
                        }
                        BatchKind::Delegation => {
                            delegating::conclude(tx, *id, end.ending, end.tx_hash, *now).await?;
                        }
                        // The sync completes mined trades and redemptions. A lost redemption is
                        // found again by its ended batch.
                        BatchKind::Trades | BatchKind::Redemptions | BatchKind::OwnerAct => {}
                    }
                    if let Some((act, step)) = act {
                        step.store(tx, act, *now).await?;
                    }
                    Ok(())
                })
            })
            .await;
        stored?;
        if let Some(gas_used) = gas_used {
            ctx.process.metrics.batch_final(gas_used);
        }
        if let Some((act, step)) = act {
            step.finish(ctx, &act).await;
        }
        Ok(())
    }

    /// Sends an unmined batch again: the newest form, at once if the node lacks it. After
    /// `replace_after_ms` it is signed with higher fees.
    async fn send_again(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        forms: &[SignedForm],
    ) -> Result<(), AppError> {
        let now = ctx.now();
        let Some(newest) = forms.first() else { return self.sign_unsigned(ctx, lease, batch).await };
        if !self.taken.lock().contains(&batch.id) {
            self.send(ctx, batch.id, &newest.raw).await;
            return Ok(());
        }
        if now.since_ms(batch.sent_at) < ctx.config.resend_after_ms {
            return Ok(());
        }
        let (form, is_new) = self.next_form(ctx, lease, batch, newest).await?;
        let input = (lease.clone(), batch.id, form.clone(), is_new, now);
        // Stored before it is sent: every hash that may be mined must be known, or its receipt
        // could not be found.
        let noted: Result<(), AppError> = ctx
            .store
            .try_write(input, |tx, (lease, id, form, is_new, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    if *is_new {
                        store::batches::insert_form(tx, *id, form).await?;
                        let replaced = TraceEvent::batch_replaced(*id, form.hash, *now);
                        store::trades::trace_batch(tx, *id, &replaced).await?;
                    }
                    Ok(store::batches::mark_sent(tx, *id, *now).await?)
                })
            })
            .await;
        noted?;
        self.send(ctx, batch.id, &form.raw).await;
        Ok(())
    }

    /// Returns the form of a batch to send now, and whether it is to be stored first.
    async fn next_form(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        newest: &SignedForm,
    ) -> Result<(SignedForm, bool), AppError> {
        if ctx.now().since_ms(newest.created_at) < ctx.config.replace_after_ms {
            return Ok((newest.clone(), false));
        }
        match replacement_fees(newest, ctx.chain.fees().await?, ctx.max_fee_per_gas()) {
            Some(fees) => match first_form(ctx, &self.signer, batch, fees)? {
                FirstForm::Signed(form) => Ok((form, true)),
                FirstForm::Requested(_) => {
                    Ok((self.replace_remotely(ctx, lease, batch, newest, fees).await?, false))
                }
            },
            None => Ok((newest.clone(), false)),
        }
    }

    /// Ends a batch that was never signed, so never sent.
    pub(super) async fn end_unsigned(&self, ctx: &Ctx, lease: &Lease, batch: &Batch) -> Result<(), AppError> {
        self.end(ctx, lease, batch, Final { ending: BatchEnding::Displaced, tx_hash: None, gas: None }).await
    }

    /// Sends a form. The node's response is only recorded, since the next tick looks at receipts.
    pub(super) async fn send(&self, ctx: &Ctx, id: BatchId, raw: &[u8]) {
        let taken = match ctx.chain.send_raw(raw).await {
            Ok(SendOutcome::Accepted | SendOutcome::AlreadyKnown) => true,
            Ok(outcome) => {
                tracing::warn!(batch.id = %id, ?outcome, "the node did not accept a batch");
                // The nonce is used, or another form is in the mempool. Sending the same bytes
                // again is pointless, and the receipts show what happened.
                matches!(outcome, SendOutcome::NonceTooLow | SendOutcome::Underpriced)
            }
            Err(error) => {
                // The bytes may have arrived: wait before sending them again.
                tracing::warn!(batch.id = %id, %error, "a batch may not have been sent");
                true
            }
        };
        if taken {
            self.taken.lock().insert(id);
        } else {
            self.taken.lock().remove(&id);
        }
    }
}

/// Returns the fees of the form that replaces `newest`: an eighth more, and at least what the chain
/// asks now.
///
/// `None` if these fees are above the ceiling, or more than [`MOST_FEE_RAISE`] times what the chain
/// asks. In the second case the fee is not the reason that the batch is not mined.
fn replacement_fees(newest: &SignedForm, current: Fees, ceiling: u128) -> Option<Fees> {
    let last = Fees {
        max_fee_per_gas: newest.max_fee_per_gas,
        max_priority_fee_per_gas: newest.max_priority_fee_per_gas,
    };
    // Nodes require at least 10% more to replace a transaction in the mempool.
    let bumped = last.bumped();
    let current = current.within(ceiling)?;
    if bumped.max_fee_per_gas > ceiling {
        return None;
    }
    let fees = Fees {
        max_fee_per_gas: bumped.max_fee_per_gas.max(current.max_fee_per_gas),
        max_priority_fee_per_gas: bumped.max_priority_fee_per_gas.max(current.max_priority_fee_per_gas),
    };
    (fees.max_fee_per_gas <= current.max_fee_per_gas.saturating_mul(MOST_FEE_RAISE)).then_some(fees)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    fn form(fee: u128) -> SignedForm {
        SignedForm {
            hash: B256::ZERO,
            raw: Vec::new(),
            max_fee_per_gas: fee,
            max_priority_fee_per_gas: 1,
            created_at: Timestamp::from_ms(0),
        }
    }

    fn fees(base: u128) -> Fees {
        Fees { max_fee_per_gas: 2 * base + 1, max_priority_fee_per_gas: 1 }
    }

    #[test]
    fn a_replacement_offers_an_eighth_more_up_to_the_ceiling() {
        let offered = |newest, base, ceiling| {
            replacement_fees(&form(newest), fees(base), ceiling).map(|fees| fees.max_fee_per_gas)
        };
        assert_eq!(offered(80, 10, u128::MAX), Some(90));
        assert_eq!(offered(80, 100, u128::MAX), Some(201));
        assert_eq!(offered(80, 100, 150), Some(150));
        assert_eq!(offered(80, 10, 90), Some(90));
        assert_eq!(offered(80, 10, 89), None, "an eighth more is above the ceiling");
        assert_eq!(offered(80, 100, 100), None, "the chain asks for more than the ceiling");
    }
}
