//! Batches that a remote signer signs.
//!
//! The batch and the request to sign it are stored before the signer is asked, and its signed form
//! before anything is sent. After a crash or without an answer, the signer is asked for the same
//! transaction again. So it never signs two transactions with one nonce, except to replace one with
//! higher fees, as with a key in this process.
//!
//! A signer that does not answer stops only its lane: the lane's worker fails until it does. Meanwhile
//! an operator can remove the lane. A batch that was never signed then ends, and other lanes take its
//! trades over.

use chain::{Fees, SignedTx};
use domain::ErrorCode;
use domain::trade::TraceEvent;
use store::batches::{Batch, BatchKind, SignedForm, SigningRequest};
use store::leases::Lease;

use super::Executor;
use super::signing::{form_of, transaction_of};
use crate::{AppError, Ctx, lease};

/// The cause of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    First,
    Replacement,
}

impl Executor {
    /// Asks the signer for a stored request, and stores the signed form.
    pub(super) async fn sign_requested(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        request: &SigningRequest,
        round: Round,
    ) -> Result<SignedForm, AppError> {
        let fees = Fees {
            max_fee_per_gas: request.max_fee_per_gas,
            max_priority_fee_per_gas: request.max_priority_fee_per_gas,
        };
        let signed = ctx.chain.sign_with(&self.signer, &transaction_of(ctx, batch, fees)).await;
        let signed: SignedTx = signed.inspect_err(|_| ctx.process.metrics.signer_failed(self.lane))?;
        let form = form_of(ctx, signed, fees);
        let input = (lease.clone(), batch.clone(), form.clone(), round, ctx.now());
        let stored: Result<bool, AppError> = ctx
            .store
            .try_write(input, |tx, (lease, batch, form, round, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    if !store::batches::insert_requested(tx, batch.id, form).await? {
                        return Ok(false);
                    }
                    if batch.kind == BatchKind::OwnerAct {
                        store::owner_acts::put_tx_hash(tx, batch.id, form.hash).await?;
                    }
                    let event = match round {
                        Round::First => TraceEvent::batch_signed(batch.id, form.hash, *now),
                        Round::Replacement => TraceEvent::batch_replaced(batch.id, form.hash, *now),
                    };
                    store::trades::trace_batch(tx, batch.id, &event).await?;
                    store::batches::mark_sent(tx, batch.id, *now).await?;
                    Ok(true)
                })
            })
            .await;
        if stored? {
            return Ok(form);
        }
        let detail = "A batch changed while it was being signed.";
        Err(AppError::new(ErrorCode::DependencyUnavailable).detail(detail))
    }

    /// Signs and sends a batch that has no signed form yet. If the lane hands its trades over, the
    /// batch ends instead.
    pub(super) async fn sign_unsigned(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
    ) -> Result<(), AppError> {
        let (request, may_sign) = ctx
            .store
            .read((batch.id, batch.lane), |tx, (id, lane)| {
                Box::pin(async move {
                    let request = store::batches::find_request(tx, *id).await?;
                    Ok((request, store::lanes::may_sign(tx, *lane).await?))
                })
            })
            .await?;
        if !may_sign {
            return self.end_unsigned(ctx, lease, batch).await;
        }
        let request = request.ok_or_else(|| AppError::new(ErrorCode::InternalError))?;
        let form = self.sign_requested(ctx, lease, batch, &request, Round::First).await?;
        self.send(ctx, batch.id, &form.raw).await;
        Ok(())
    }

    /// Returns the form that replaces `newest` with higher fees, signed and stored. Without an answer
    /// of the signer, `newest` is sent on.
    pub(super) async fn replace_remotely(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        newest: &SignedForm,
        fees: Fees,
    ) -> Result<SignedForm, AppError> {
        let request = SigningRequest {
            max_fee_per_gas: fees.max_fee_per_gas,
            max_priority_fee_per_gas: fees.max_priority_fee_per_gas,
            created_at: ctx.now(),
        };
        let input = (lease.clone(), batch.id, request);
        let requested: Result<Option<SigningRequest>, AppError> = ctx
            .store
            .try_write(input, |tx, (lease, id, request)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    // An earlier request stays: the signer may already have answered it.
                    store::batches::put_request(tx, *id, request).await?;
                    Ok(store::batches::find_request(tx, *id).await?)
                })
            })
            .await;
        let request = requested?.ok_or_else(|| AppError::new(ErrorCode::InternalError))?;
        match self.sign_requested(ctx, lease, batch, &request, Round::Replacement).await {
            Ok(form) => Ok(form),
            Err(error) if lease::is_lost(&error) => Err(error),
            Err(error) => {
                tracing::warn!(lane = self.lane, batch.id = %batch.id, %error, "a batch keeps its fees");
                Ok(newest.clone())
            }
        }
    }
}
