//! Repairs trades that are still `executing` although their batch has ended.
//!
//! Either the trade's event is in a block that was read without it, and the block is read again. Or
//! its intent never ran, which the Gate's nonce proves, and the same intent is signed again.

use chain::Receipt;
use domain::ids::TradeId;
use domain::trade::{Status, TraceEvent};
use domain::{ErrorCode, Timestamp};
use store::batches::SignedForm;
use store::trades::Trade;
use store::{StoreError, Tx};

use super::reread::reread_block;
use crate::{AppError, Ctx};

/// The result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TradeRepair {
    /// The trade had already ended.
    HadEnded(Status),
    /// The trade was not sent yet. The executor will send it.
    NotExecuting(Status),
    /// The chain's event was found, and the trade has now ended.
    Ended(Status),
    /// The chain's event is in this block, which is not settled yet.
    AwaitsBlock(u64),
    /// The intent never ran. The executor will sign the same intent again.
    SignedAgain,
    /// The batch has not ended yet.
    BatchOpen,
}

impl TradeRepair {
    /// A stable identifier for logs and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HadEnded(_) => "had_ended",
            Self::NotExecuting(_) => "not_executing",
            Self::Ended(_) => "ended",
            Self::AwaitsBlock(_) => "awaits_block",
            Self::SignedAgain => "signed_again",
            Self::BatchOpen => "batch_open",
        }
    }
}

/// Finds out on chain whether the trade executed, then ends it or queues it for signing.
pub async fn repair_trade(ctx: &Ctx, id: TradeId) -> Result<TradeRepair, AppError> {
    let Found { trade, is_batch_open, forms, last, settled } = Found::read(ctx, id).await?;
    let status = trade.state.status();
    if status.is_terminal() {
        return Ok(TradeRepair::HadEnded(status));
    }
    if status != Status::Executing || trade.batch_id.is_none() {
        return Ok(TradeRepair::NotExecuting(status));
    }
    let Some(block) = block_of(ctx, &trade, &forms).await? else {
        if is_batch_open {
            return Ok(TradeRepair::BatchOpen);
        }
        return sign_again(ctx, &trade).await;
    };
    // The regular sync has not reached the block yet and will end the trade by itself.
    if last.is_none_or(|last| last < block) || settled.is_none_or(|settled| settled < block) {
        return Ok(TradeRepair::AwaitsBlock(block));
    }
    reread_block(ctx, block).await?;
    let status = Found::read(ctx, id).await?.trade.state.status();
    if status.is_terminal() {
        tracing::warn!(trade.id = %id, %status, block, "ended a trade after reading its block again");
        return Ok(TradeRepair::Ended(status));
    }
    // The block has no event of the trade. `sign_again` still asks the Gate for the nonce first.
    sign_again(ctx, &trade).await
}

struct Found {
    trade: Trade,
    is_batch_open: bool,
    forms: Vec<SignedForm>,
    last: Option<u64>,
    settled: Option<u64>,
}

impl Found {
    async fn read(ctx: &Ctx, id: TradeId) -> Result<Self, AppError> {
        let read = ctx.store.read(id, |tx, id| Box::pin(Self::find(tx, *id))).await?;
        read.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))
    }

    async fn find(tx: &mut Tx, id: TradeId) -> Result<Option<Self>, StoreError> {
        let Some(trade) = store::trades::find_any(tx, id).await? else { return Ok(None) };
        let (is_batch_open, forms) = match trade.batch_id {
            Some(batch) => {
                (store::batches::is_open(tx, batch).await?, store::batches::list_forms(tx, batch).await?)
            }
            None => (false, Vec::new()),
        };
        let last = store::sync::find_last(tx, None).await?.map(|block| block.number);
        let settled = store::sync::find_settled(tx).await?;
        Ok(Some(Self { trade, is_batch_open, forms, last, settled }))
    }
}

/// Returns the block that contains the trade's batch or, if another transaction carried the intent,
/// its event.
async fn block_of(ctx: &Ctx, trade: &Trade, forms: &[SignedForm]) -> Result<Option<u64>, AppError> {
    for form in forms {
        if let Some(Receipt { block_number, success: true, .. }) = ctx.chain.receipt(form.hash).await? {
            return Ok(Some(block_number));
        }
    }
    let Some(nonce) = trade.nonce else { return Ok(None) };
    if !ctx.chain.is_nonce_used(trade.account, trade.key_index, nonce).await? {
        return Ok(None);
    }
    // The nonce is used, but no form of the batch is mined: another transaction carried the intent.
    let before =
        ctx.store.read(trade.created_at, |tx, at| Box::pin(store::sync::find_block_before(tx, *at))).await?;
    let event = ctx.chain.settle_event(trade.id.0, trade.account, before).await?;
    Ok(event.map(|event| event.block_number))
}

/// Takes the trade out of its batch if the Gate has not used its nonce. The executor then signs the
/// same intent again.
async fn sign_again(ctx: &Ctx, trade: &Trade) -> Result<TradeRepair, AppError> {
    let nonce = trade.nonce.ok_or_else(|| AppError::new(ErrorCode::InternalError))?;
    // The nonce is used without an event: signing again could only produce a duplicate. Leave it to
    // the operator.
    if ctx.chain.is_nonce_used(trade.account, trade.key_index, nonce).await? {
        let detail = "The Gate has used the trade's nonce, and no event of the trade was found.";
        return Err(AppError::new(ErrorCode::DependencyUnavailable).detail(detail));
    }
    let (id, batch_id) = (trade.id, trade.batch_id);
    let batch_id = batch_id.ok_or_else(|| AppError::new(ErrorCode::InternalError))?;
    let lost = TraceEvent::batch_lost(batch_id, "unseen", ctx.now());
    ctx.store
        .write((id, batch_id, lost), |tx, (id, batch_id, lost)| {
            Box::pin(store::trades::leave_batch(tx, *id, *batch_id, lost))
        })
        .await?;
    tracing::warn!(trade.id = %id, batch.id = %batch_id, "signing a trade again that its batch did not execute");
    ctx.wake.executor.notify_waiters();
    Ok(TradeRepair::SignedAgain)
}

/// Repairs at most `limit` trades that are still executing after their batch ended before `before`.
/// Returns how many were found.
pub async fn repair_stuck(ctx: &Ctx, before: Timestamp, limit: u32) -> Result<usize, AppError> {
    let stuck = ctx
        .store
        .read((before, limit), |tx, (before, limit)| Box::pin(store::trades::list_stuck(tx, *before, *limit)))
        .await;
    let stuck = stuck?;
    for id in &stuck {
        match repair_trade(ctx, *id).await {
            Ok(TradeRepair::AwaitsBlock(_)) => {}
            Ok(repaired) => {
                tracing::warn!(trade.id = %id, repair = repaired.as_str(), "repaired a trade whose batch has ended")
            }
            Err(error) => {
                tracing::warn!(trade.id = %id, %error, "a trade whose batch has ended remains executing")
            }
        }
    }
    Ok(stuck.len())
}
