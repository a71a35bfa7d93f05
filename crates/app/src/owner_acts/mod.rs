//! Owner acts: batches of calls that an owner of an account signs.
//!
//! An act is a row. It is prepared with its calls, its nonce and its deadline, and then signed by an
//! owner. The executor of the account's lane stores the signed transaction, sends it and follows it
//! like a batch of trades, with the same nonces. So acts never compete for a nonce, and survive a
//! crash at any step.

mod decision;
mod limits;
mod prepare;
mod request;
mod sign;

use alloy_primitives::{Address, Bytes};
use chain::{Call, ChainError, Receipt, Revert, calls};
use domain::ids::{OwnerActId, UserId};
use domain::owner_act::{OwnerActFailure, OwnerActKind, OwnerActStatus};
use domain::{ErrorCode, Timestamp, Usdc};
use serde_json::Value;
use store::owner_acts::OwnerAct;
use store::users::Account;

use crate::accounts::{self, first_owner_of};
use crate::{AppError, Ctx};

pub(crate) use decision::{ActDecision, decide};
pub use limits::ActOrigin;
pub(crate) use prepare::put_second_owner;
pub use prepare::{PreparedAct, choose_second_owner, find_second_owner, prepare};
pub use request::{Caps, OwnerActRequest, OwnerOrder, WithdrawalAmount};
pub use sign::{OwnerSignature, sign};

/// Returns an act of this user. Another user's act gets the same error as a missing one.
pub async fn find(ctx: &Ctx, user_id: UserId, id: OwnerActId) -> Result<OwnerAct, AppError> {
    let found = ctx
        .store
        .read((user_id, id), |tx, (user_id, id)| Box::pin(store::owner_acts::find_of_user(tx, *user_id, *id)))
        .await?;
    found.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))
}

/// Lists a user's acts, newest first, starting after the id `before`.
pub async fn list(
    ctx: &Ctx,
    user_id: UserId,
    before: Option<OwnerActId>,
    limit: u32,
) -> Result<Vec<OwnerAct>, AppError> {
    Ok(ctx
        .store
        .read((user_id, before, limit), |tx, (user_id, before, limit)| {
            Box::pin(store::owner_acts::list_of_user(tx, *user_id, *before, *limit))
        })
        .await?)
}

/// Returns the user's signed act that has not ended, if any. An account has at most one.
pub async fn find_in_progress(ctx: &Ctx, user_id: UserId) -> Result<Option<OwnerAct>, AppError> {
    let address = accounts::account_of(ctx, user_id).await?.address;
    let found = ctx
        .store
        .read(address, |tx, address| Box::pin(store::owner_acts::find_in_progress(tx, *address)))
        .await?;
    Ok(found)
}

/// Returns the receipt of the transaction that executed an act, which may not be final yet. `None`
/// if no transaction of this service has executed it.
pub async fn find_receipt(ctx: &Ctx, act: &OwnerAct) -> Result<Option<Receipt>, AppError> {
    let Some(batch_id) = act.batch_id else { return Ok(None) };
    let forms = ctx.store.read(batch_id, |tx, id| Box::pin(store::batches::list_forms(tx, *id))).await?;
    for form in forms {
        if let Some(receipt) = ctx.chain.receipt(form.hash).await?.filter(|receipt| receipt.success) {
            return Ok(Some(receipt));
        }
    }
    Ok(None)
}

/// Returns the error of an act that ended without being executed. `None` if it has not ended, or
/// was executed.
pub fn error_of(act: &OwnerAct) -> Option<AppError> {
    match (act.status, act.failure) {
        (OwnerActStatus::Expired, _) => Some(expired(act.deadline_s)),
        (OwnerActStatus::Failed, Some(OwnerActFailure::NonceUsed)) => Some(overtaken()),
        (OwnerActStatus::Failed, Some(OwnerActFailure::SignatureInvalid)) => Some(signature_invalid()),
        (OwnerActStatus::Failed, _) => {
            let reason = act.error.clone().unwrap_or_default();
            Some(call_reverted(reason.parse().unwrap_or(Revert::Other(reason))))
        }
        _ => None,
    }
}

/// Returns the error for an act whose deadline has passed.
fn expired(deadline_s: u64) -> AppError {
    let deadline = Timestamp::from_s(deadline_s);
    AppError::invalid_state(
        ErrorCode::ValidationFailed,
        format!("the batch expired at {deadline} before it was executed: prepare and sign it again"),
    )
}

/// Returns the error for an act whose nonce another batch of the account has used.
fn overtaken() -> AppError {
    AppError::invalid_state(
        ErrorCode::ValidationFailed,
        "the account executed another batch first: prepare and sign this one again",
    )
}

fn signature_invalid() -> AppError {
    AppError::field("/signature", "must be the signature of a current owner over this batch")
}

fn call_reverted(reason: Revert) -> AppError {
    AppError::from(ChainError::Reverted(reason))
}

/// Returns the call that executes an act.
///
/// The account's first act goes through the account factory, which deploys the account if necessary.
/// Later ones must not: the factory does nothing if the last batch of the account had the same calls
/// and the same deadline, and would then succeed without executing the act.
fn executing_call(
    ctx: &Ctx,
    act: &OwnerAct,
    account: &Account,
    calls: &[Call],
    signature: Bytes,
) -> Result<Call, AppError> {
    if act.nonce > 0 {
        return Ok(Call::new(act.account, calls::execute_signed(calls, act.deadline_s, signature)));
    }
    let first_owner = first_owner_of(account)?;
    let data = calls::create_and_execute(&first_owner, account.salt, calls, act.deadline_s, signature);
    Ok(Call::new(ctx.chain.contracts().account_factory, data))
}

/// Returns the calls of an act.
pub fn calls_of(act: &OwnerAct) -> Result<Vec<Call>, AppError> {
    serde_json::from_str(&act.calls).map_err(AppError::internal)
}

/// Returns whether an act changes the owners of its account: only those calls have the account itself
/// as their target.
pub fn changes_owners(act: &OwnerAct) -> Result<bool, AppError> {
    Ok(calls_of(act)?.iter().any(|call| call.target == act.account))
}

/// Returns the receiver and the amount of a withdrawal. `None` for acts of other kinds.
pub fn withdrawal_of(act: &OwnerAct) -> Result<Option<(Address, Usdc)>, AppError> {
    if act.kind != OwnerActKind::Withdraw {
        return Ok(None);
    }
    let calls = calls_of(act)?;
    let transfer = calls.first().and_then(|call| calls::decode_transfer(&call.data));
    Ok(transfer.map(|(to, usdc)| (to, Usdc::from_atomic(usdc.saturating_to()))))
}

fn calls_to_json(calls: &[Call]) -> Result<String, AppError> {
    serde_json::to_value(calls).map(|calls: Value| calls.to_string()).map_err(AppError::internal)
}

/// Refreshes the stored owners after an act, which may have changed them. Only logs an error: the
/// owners are read from the chain whenever they matter.
pub(crate) async fn refresh_owners(ctx: &Ctx, act: &OwnerAct) {
    if let Err(error) = accounts::owners(ctx, act.user_id).await {
        tracing::warn!(user.id = %act.user_id, %error, "the owners of an account could not be read after an act");
    }
}
