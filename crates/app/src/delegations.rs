//! Changes to delegations that the service makes on chain without the account's owner. It can
//! revoke or reduce a delegation, but never extend it.
//!
//! A change is a row. The executor of the account's lane signs, stores, sends and follows it like a
//! batch of trades, with the same nonces. So a change never competes with a batch for a nonce, and
//! survives a crash at any step.

use alloy_primitives::Bytes;
use chain::{Policy, SpendingLimits, calls};
use domain::delegation::{Ceilings, DelegationEdit};
use domain::ids::{DelegationChangeId, KeyId};
use domain::lane::assign;
use domain::limits::sale_cap;
use domain::{ErrorCode, Timestamp, Usdc};
use serde_json::json;
use store::Tx;
use store::audit_log::{Act, note};
use store::delegations::DelegationChange;
use store::keys::Key;

use crate::{AppError, Ctx};

pub(crate) fn new_id(ctx: &Ctx) -> DelegationChangeId {
    DelegationChangeId(ctx.uuid())
}

/// Queues a change of a key's delegation. If the key is already being revoked, returns that
/// revocation.
pub async fn queue(ctx: &Ctx, key_id: KeyId, change: DelegationEdit) -> Result<DelegationChange, AppError> {
    if matches!(change, DelegationEdit::Reduce(ceilings) if ceilings.is_empty()) {
        return Err(AppError::new(ErrorCode::ValidationFailed).detail("Name at least one value to reduce."));
    }
    let input = (new_id(ctx), key_id, change, ctx.now());
    let queued = ctx
        .store
        .try_write(input, |tx, (id, key_id, change, now)| {
            Box::pin(async move {
                let key = store::keys::find(tx, *key_id).await?.ok_or_else(|| {
                    AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.")
                })?;
                note(tx, act_of(&key, change));
                insert(tx, *id, &key, *change, *now).await
            })
        })
        .await?;
    ctx.wake.executor.notify_waiters();
    Ok(queued)
}

fn act_of(key: &Key, change: &DelegationEdit) -> Act {
    let subject = format!("key:{}", key.id);
    match change {
        DelegationEdit::Revoke => Act::new("delegation.revoke", subject),
        DelegationEdit::Reduce(Ceilings { per_trade, daily, expires_at }) => {
            let usdc = |cap: &Option<Usdc>| cap.map(|usdc| usdc.to_string());
            Act::new("delegation.reduce", subject).after(json!({
                "perTradeUsdcAtomic": usdc(per_trade),
                "dailyUsdcAtomic": usdc(daily),
                "expiresAt": expires_at,
            }))
        }
    }
}

/// Adds a change to the queue of the account's lane. Returns the open revocation instead if there
/// is one.
pub(crate) async fn insert(
    tx: &mut Tx,
    id: DelegationChangeId,
    key: &Key,
    change: DelegationEdit,
    now: Timestamp,
) -> Result<DelegationChange, AppError> {
    let no_account = || AppError::new(ErrorCode::SmartAccountNotProvisioned);
    let account = store::users::find_account(tx, key.user_id).await?.ok_or_else(no_account)?.address;
    let lane = assign(account, &store::lanes::list_assignable(tx).await?);
    let queued = DelegationChange::queued(id, key, account, lane, change, now);
    if store::delegations::insert(tx, &queued).await? {
        return Ok(queued);
    }
    let open = store::delegations::find_open_revocation(tx, key.id).await?;
    open.ok_or_else(|| AppError::new(ErrorCode::InternalError))
}

/// Returns the last requested change of a key's delegation.
pub async fn find_last(ctx: &Ctx, key_id: KeyId) -> Result<Option<DelegationChange>, AppError> {
    Ok(ctx.store.read(key_id, |tx, id| Box::pin(store::delegations::find_last(tx, *id))).await?)
}

pub async fn find(ctx: &Ctx, id: DelegationChangeId) -> Result<Option<DelegationChange>, AppError> {
    Ok(ctx.store.read(id, |tx, id| Box::pin(store::delegations::find(tx, *id))).await?)
}

/// Returns whether the change would have an effect on `policy`.
pub(crate) fn is_needed(change: &DelegationEdit, policy: &Policy) -> bool {
    // No policy, or a revoked one.
    if policy.expiry_s == 0 {
        return false;
    }
    match change {
        DelegationEdit::Revoke => true,
        DelegationEdit::Reduce(Ceilings { per_trade, daily, expires_at }) => {
            per_trade.is_some_and(|cap| {
                cap.atomic() < policy.per_trade_usdc_atomic
                    || sale_cap(cap).atomic() < policy.sale_per_trade_usdc_atomic
            }) || daily.is_some_and(|cap| {
                cap.atomic() < policy.daily_usdc_atomic
                    || sale_cap(cap).atomic() < policy.sale_daily_usdc_atomic
            }) || expires_at.is_some_and(|at| at.s() < policy.expiry_s)
        }
    }
}

/// Returns the contract call of a change.
pub(crate) fn calldata(change: &DelegationChange) -> Bytes {
    let (account, key_index) = (change.account, change.key_index);
    match change.change {
        DelegationEdit::Revoke => calls::revoke_policy(account, key_index),
        DelegationEdit::Reduce(Ceilings { per_trade, daily, expires_at }) => {
            // The Gate only ever lowers values, so the maximum leaves one unchanged.
            let cap = |cap: Option<Usdc>| cap.map_or(u64::MAX, Usdc::atomic);
            let expiry_s = expires_at.map_or(u32::MAX, |at| u32::try_from(at.s()).unwrap_or(u32::MAX));
            let limits = SpendingLimits {
                per_trade_usdc_atomic: cap(per_trade),
                daily_usdc_atomic: cap(daily),
                sale_per_trade_usdc_atomic: cap(per_trade.map(sale_cap)),
                sale_daily_usdc_atomic: cap(daily.map(sale_cap)),
                expiry_s,
            };
            calls::reduce_policy(account, key_index, limits)
        }
    }
}
