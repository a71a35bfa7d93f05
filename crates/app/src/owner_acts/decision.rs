//! Decides about a signed act: it can be sent, it has ended, or it must wait.

use alloy_primitives::Address;
use chain::{Call, ChainError, ExecutedBatch, Revert};
use domain::owner_act::{OwnerActFailure, OwnerActKind};
use domain::time::{HOUR_MS, MINUTE_MS};
use domain::{ErrorCode, Timestamp};
use store::owner_acts::{OwnerAct, OwnerActEnding};

use super::prepare::is_expired;
use super::{calls_of, executing_call};
use crate::accounts::account_of;
use crate::finality::final_block;
use crate::{AppError, Ctx};

/// The clocks of this machine and of the chain may differ by this much.
const CLOCK_SKEW_MS: i64 = 5 * MINUTE_MS;

/// The time after an act's deadline for which the event of the batch that used its nonce is looked
/// for.
const SEARCH_MS: i64 = HOUR_MS;

/// The decision about a signed act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActDecision {
    /// This call would execute it now.
    Send {
        call: Call,
        gas: u64,
    },
    End(OwnerActEnding),
    /// The chain has not decided yet, for this reason.
    Wait(String),
}

/// Decides about a signed act that no open batch contains. `executor` is the sender.
///
/// An act that cannot be decided waits, so that it does not stop its lane.
pub(crate) async fn decide(ctx: &Ctx, act: &OwnerAct, executor: Address) -> ActDecision {
    match try_decide(ctx, act, executor).await {
        Ok(decision) => decision,
        Err(error) => {
            tracing::warn!(act.id = %act.id, %error, cause = ?error.source, "an owner's act waits");
            ActDecision::Wait(error.to_string())
        }
    }
}

async fn try_decide(ctx: &Ctx, act: &OwnerAct, executor: Address) -> Result<ActDecision, AppError> {
    // An act must not be ended on the word of a node of another chain.
    ctx.chain.confirm().await?;
    if ctx.chain.account_nonce(act.account).await? > act.nonce {
        return used_nonce(ctx, act).await;
    }
    if is_expired(ctx, act.deadline_s, ctx.now()).await? {
        return Ok(ActDecision::End(OwnerActEnding::Expired));
    }
    if act.kind == OwnerActKind::Trade && ctx.process.switches.is_trading_halted() {
        return Ok(ActDecision::Wait("trading is halted".to_owned()));
    }
    let account = account_of(ctx, act.user_id).await?;
    let signature = act.signature.clone().ok_or_else(|| AppError::new(ErrorCode::InternalError))?;
    let call = executing_call(ctx, act, &account, &calls_of(act)?, signature.into())?;
    match ctx.chain.estimate_gas(executor, Some(call.target), call.data.clone()).await {
        Ok(gas) => Ok(ActDecision::Send { call, gas }),
        Err(ChainError::Reverted(reason)) => reverted(ctx, act, reason).await,
        Err(error) => Err(error.into()),
    }
}

/// The account has used the act's nonce: for the act itself, or for another batch.
async fn used_nonce(ctx: &Ctx, act: &OwnerAct) -> Result<ActDecision, AppError> {
    let since = act.created_at.plus_ms(-CLOCK_SKEW_MS);
    let from = ctx.store.read(since, |tx, at| Box::pin(store::sync::find_block_before(tx, *at))).await?;
    let executed = ctx.chain.executed_batch(act.account, act.nonce, from).await;
    let ExecutedBatch { digest, tx_hash, block_number } = match executed {
        Ok(Some(executed)) => executed,
        // The node may have the newer state but not the log yet.
        Ok(None) => return Ok(not_found(ctx, act)),
        // A node may never return logs of this many blocks.
        Err(ChainError::Rejected(_)) => return Ok(not_found(ctx, act)),
        Err(error) => return Err(error.into()),
    };
    let head = ctx.chain.head().await?.number;
    if final_block(ctx, head).await?.is_none_or(|last| block_number > last) {
        return Ok(ActDecision::Wait("the batch that used the nonce is not final".to_owned()));
    }
    Ok(ActDecision::End(if digest == act.digest {
        OwnerActEnding::Done { tx_hash }
    } else {
        OwnerActEnding::Failed { failure: OwnerActFailure::NonceUsed, error: None }
    }))
}

/// The decision about an act whose nonce was used by a batch whose event cannot be read.
fn not_found(ctx: &Ctx, act: &OwnerAct) -> ActDecision {
    let reason = "the batch that used the nonce is not found".to_owned();
    let until = Timestamp::from_s(act.deadline_s).plus_ms(SEARCH_MS);
    if ctx.now() <= until {
        return ActDecision::Wait(reason);
    }
    // The account must become free for other acts.
    ActDecision::End(OwnerActEnding::Failed { failure: OwnerActFailure::NonceUsed, error: Some(reason) })
}

async fn reverted(ctx: &Ctx, act: &OwnerAct, reason: Revert) -> Result<ActDecision, AppError> {
    let failure = match reason {
        Revert::DeadlinePassed => return Ok(ActDecision::End(OwnerActEnding::Expired)),
        // The signature is also invalid if the nonce was used since it was read.
        Revert::SignatureInvalid if ctx.chain.account_nonce(act.account).await? > act.nonce => {
            return used_nonce(ctx, act).await;
        }
        Revert::SignatureInvalid => OwnerActFailure::SignatureInvalid,
        _ => OwnerActFailure::CallReverted,
    };
    Ok(ActDecision::End(OwnerActEnding::Failed { failure, error: Some(reason.to_string()) }))
}
