//! Builds batches: assigns nonces, builds intents and signs. One transaction stores all of it
//! before anything is sent.

use alloy_primitives::{Address, Bytes, U256};
use chain::{Fees, LaneSigner, SignedTx, Transaction, execute_calldata};
use domain::ids::{BatchId, TradeId};
use domain::trade::{Status, TraceEvent, Transition};
use domain::{ErrorCode, Timestamp};
use store::batches::{Batch, BatchKind, FirstForm, SignedForm, SigningRequest};
use store::leases::Lease;
use store::trades::Trade;

use super::renewing::{RenewedTrade, take_nonces};
use super::{Executor, ToSign};
use crate::trades::intents::intent_of;
use crate::{AppError, Ctx, lease};

/// Gas of a batch apart from its intents (the Gate requires 400,000 left before each one), and of
/// each intent at most.
const BATCH_GAS: u64 = 600_000;
const INTENT_GAS: u64 = 130_000;
/// The maximum gas limit of a transaction (EIP-7825). Nodes reject a higher one.
pub(super) const MOST_GAS: u64 = 1 << 24;
const _: () = assert!(batch_gas(super::MAX_BATCH as u64) <= MOST_GAS);

pub(crate) const fn batch_gas(intents: u64) -> u64 {
    BATCH_GAS + INTENT_GAS * intents
}

/// Returns the number of intents for which [`batch_gas`] gives this limit.
pub(super) const fn intents_of(gas_limit: u64) -> u64 {
    gas_limit.saturating_sub(BATCH_GAS) / INTENT_GAS
}

impl Executor {
    /// Assigns nonces, builds intents, signs the batch and stores all of it in one transaction,
    /// before anything is sent.
    ///
    /// `None` if a recovery was opened, if the lane hands its trades over, or if no trade is left because all of their keys were
    /// stopped.
    pub(super) async fn sign_and_store(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        fees: Fees,
        fresh: Vec<ToSign>,
        again: Vec<RenewedTrade>,
    ) -> Result<Option<(Batch, FirstForm)>, AppError> {
        let chain_nonce = self.next_nonce(ctx, open).await?;
        let now = ctx.now();
        let signing = Signing {
            lease: lease.clone(),
            batch_id: BatchId(ctx.uuid()),
            chain_nonce,
            fees,
            fresh,
            again,
            execute: Transition::execute(Status::Validating, now).map_err(AppError::internal)?,
            signer: self.signer.clone(),
            lane: self.lane,
            ctx: ctx.clone(),
        };
        ctx.store.try_write(signing, |tx, signing| Box::pin(store_batch(tx, signing))).await
    }

    /// Returns the executor's next nonce, after those of the open batches.
    pub(super) async fn next_nonce(&self, ctx: &Ctx, open: &[Batch]) -> Result<u64, AppError> {
        // A transaction is signed with this nonce, so it must not come from a node of another
        // chain.
        let next = async {
            match open.last() {
                // Not the node's count: it may not have seen the newest batch yet.
                Some(last) => Ok(last.chain_nonce + 1),
                None => ctx.chain.transaction_count(self.signer.address()).await,
            }
        };
        let ((), next) = tokio::try_join!(ctx.chain.confirm(), next)?;
        Ok(next)
    }
}

/// The parts of a batch that depend on its content.
pub(super) struct NewBatch {
    pub id: BatchId,
    pub kind: BatchKind,
    pub chain_nonce: u64,
    /// The called contract, if the kind does not determine it.
    pub target: Option<Address>,
    pub calldata: Vec<u8>,
    pub gas_limit: u64,
}

impl NewBatch {
    pub(super) fn of(self, lane: u16, signer: &LaneSigner, now: Timestamp) -> Batch {
        Batch {
            id: self.id,
            lane,
            kind: self.kind,
            executor: signer.address(),
            chain_nonce: self.chain_nonce,
            target: self.target,
            calldata: self.calldata,
            gas_limit: self.gas_limit,
            created_at: now,
            sent_at: now,
        }
    }
}

/// The input of [`store_batch`].
struct Signing {
    lease: Lease,
    batch_id: BatchId,
    chain_nonce: u64,
    fees: Fees,
    fresh: Vec<ToSign>,
    again: Vec<RenewedTrade>,
    execute: Transition,
    signer: LaneSigner,
    lane: u16,
    ctx: Ctx,
}

async fn store_batch(tx: &mut store::Tx, signing: &Signing) -> Result<Option<(Batch, FirstForm)>, AppError> {
    // Checked in the transaction that stores the signed bytes: a process that lost its lease signs
    // nothing.
    lease::check(tx, &signing.lease).await?;
    // Again here, since a recovery may have been opened after `find_work`, or an operator may have
    // removed the lane.
    if store::recoveries::is_open(tx).await? || !store::lanes::may_sign(tx, signing.lane).await? {
        return Ok(None);
    }
    let now = signing.execute.trace.at;
    let mut intents = Vec::with_capacity(signing.fresh.len() + signing.again.len());
    let mut again: Vec<TradeId> = Vec::with_capacity(signing.again.len());
    for one in &signing.again {
        let (trade, chain_market_id) = one.candidate();
        // The key was stopped after the checks: leave the trade out, and the next tick ends it.
        let Some(nonce) = one.take_nonce(tx, now).await? else { continue };
        intents.push(intent_of(trade, *chain_market_id, nonce)?);
        again.push(trade.id);
    }
    let fresh: Vec<_> = signing.fresh.iter().map(|fresh| (&fresh.candidate.0, fresh.highest_nonce)).collect();
    let nonces = if fresh.is_empty() { Vec::new() } else { take_nonces(tx, &fresh, now).await? };
    let mut assigned: Vec<(&Trade, u32)> = Vec::with_capacity(signing.fresh.len());
    for (ToSign { candidate: (trade, chain_market_id), .. }, nonce) in signing.fresh.iter().zip(nonces) {
        let Some(nonce) = nonce else { continue };
        intents.push(intent_of(trade, *chain_market_id, nonce)?);
        assigned.push((trade, nonce));
    }
    if intents.is_empty() {
        return Ok(None);
    }
    let batch = NewBatch {
        id: signing.batch_id,
        kind: BatchKind::Trades,
        chain_nonce: signing.chain_nonce,
        target: None,
        calldata: execute_calldata(&intents).to_vec(),
        gas_limit: batch_gas(intents.len() as u64),
    };
    let batch = batch.of(signing.lane, &signing.signer, signing.execute.trace.at);
    // Signed inside the transaction. If it rolls back, the bytes were never sent and the nonces are
    // free again.
    let form = first_form(&signing.ctx, &signing.signer, &batch, signing.fees)?;
    store::batches::insert(tx, &batch, &form).await?;
    let signed = form.hash().map(|hash| TraceEvent::batch_signed(batch.id, hash, signing.execute.trace.at));
    // The status is compared and set: a trade that ended meanwhile rolls the whole batch back.
    if !store::trades::assign_intent(tx, &assigned, batch.id, &signing.execute, signed.as_ref()).await? {
        return Err(
            AppError::new(ErrorCode::InternalError).detail("A trade changed while it was being signed.")
        );
    }
    store::trades::set_batch(tx, &again, batch.id, signed.as_ref()).await?;
    Ok(Some((batch, form)))
}

/// Signs the first form of a batch, or returns the request to sign it if its key is not in this
/// process. A remote signer is not asked inside of a transaction, which would block other writers.
pub(super) fn first_form(
    ctx: &Ctx,
    signer: &LaneSigner,
    batch: &Batch,
    fees: Fees,
) -> Result<FirstForm, AppError> {
    let Some(key) = signer.local() else {
        return Ok(FirstForm::Requested(SigningRequest {
            max_fee_per_gas: fees.max_fee_per_gas,
            max_priority_fee_per_gas: fees.max_priority_fee_per_gas,
            created_at: ctx.now(),
        }));
    };
    let signed = ctx.chain.sign(key, &transaction_of(ctx, batch, fees))?;
    Ok(FirstForm::Signed(form_of(ctx, signed, fees)))
}

/// Returns the transaction of a batch with these fees.
pub(super) fn transaction_of(ctx: &Ctx, batch: &Batch, fees: Fees) -> Transaction {
    let contracts = ctx.chain.contracts();
    let of_kind = match batch.kind {
        BatchKind::Trades | BatchKind::Delegation => contracts.gate,
        BatchKind::Redemptions => contracts.hub,
        BatchKind::OwnerAct => contracts.account_factory,
    };
    Transaction {
        to: Some(batch.target.unwrap_or(of_kind)),
        data: Bytes::copy_from_slice(&batch.calldata),
        value: U256::ZERO,
        nonce: batch.chain_nonce,
        gas_limit: batch.gas_limit,
        fees,
    }
}

/// Returns a signed transaction in the form in which it is stored.
pub(super) fn form_of(ctx: &Ctx, signed: SignedTx, fees: Fees) -> SignedForm {
    SignedForm {
        hash: signed.hash,
        raw: signed.raw.to_vec(),
        max_fee_per_gas: fees.max_fee_per_gas,
        max_priority_fee_per_gas: fees.max_priority_fee_per_gas,
        created_at: ctx.now(),
    }
}
