//! Pausing a key's trading: the client's own emergency stop.
//!
//! As soon as the pause is stored, the key can neither create nor confirm trades, in any process.
//! The statement that inserts a trade checks it, and so do the transactions that confirm and sign.
//! Trades that wait to be signed are rejected. Trades that are already signed are up to the chain.
//! Reads still work. The operator can resume the key, and the web application its owner's.
//!
//! Revoked and expired keys are stopped in the same places, permanently.

use domain::ids::KeyId;
use domain::key::Scope;
use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::audit_log::note;
use store::keys::{Key, TradingStop};
use store::{StoreError, Tx};

use crate::caller::Caller;
use crate::{AppError, Ctx, Submission};

/// The error for a trade with a key that can no longer trade.
pub fn stopped(stop: TradingStop) -> AppError {
    let code = match stop {
        TradingStop::Revoked => ErrorCode::ApiKeyRevoked,
        TradingStop::Expired => ErrorCode::ApiKeyExpired,
        TradingStop::Paused => ErrorCode::ApiKeyPaused,
    };
    AppError::new(code).submission(Submission::NotSubmitted)
}

/// Pauses trading of the caller's key. Returns the start of the pause. Idempotent.
pub async fn pause(ctx: &Ctx, caller: &Caller) -> Result<Timestamp, AppError> {
    caller.require(Scope::TradesWrite)?;
    let input = (caller.key.id, ctx.now());
    let since = caller
        .acting(ctx)
        .write_of_user(caller.user_id(), input, |tx, (id, now)| Box::pin(mark_paused(tx, *id, *now)))
        .await;
    let since = since
        .map_err(|error| AppError::from(error).of_one_unit())?
        .ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
    forget(ctx, caller.key.id);
    // Wake the executors: they reject the trades that wait to be signed.
    ctx.wake.executor.notify_waiters();
    Ok(since)
}

/// Pauses trading of a key for the actor of the context. Idempotent.
pub async fn pause_noted(ctx: &Ctx, id: KeyId) -> Result<Key, AppError> {
    let paused = ctx
        .store
        .try_write((id, ctx.now()), |tx, (id, now)| {
            Box::pin(async move {
                let missing =
                    || AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.");
                mark_paused(tx, *id, *now).await?.ok_or_else(missing)?;
                store::keys::find(tx, *id).await?.ok_or_else(missing)
            })
        })
        .await;
    forget(ctx, id);
    // Wake the executors: they reject the trades that wait to be signed.
    ctx.wake.executor.notify_waiters();
    paused
}

/// Pauses a key and notes it in the audit log. `None` if there is no such key.
async fn mark_paused(tx: &mut Tx, id: KeyId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let since = store::keys::mark_paused(tx, id, now).await?;
    // A second pause changes nothing, so a client that repeats it doesn't fill the log.
    if since == Some(now) {
        let act = super::act::on_key("key.pause", id).before(json!({ "paused": false }));
        note(tx, act.after(json!({ "pausedAt": since })));
    }
    Ok(since)
}

/// Removes a key that this process has changed from its caches.
pub(crate) fn forget(ctx: &Ctx, id: KeyId) {
    ctx.process.key_cache.forget(id);
    ctx.process.session_cache.forget_key(id);
}

/// Resumes trading of a paused key. Idempotent.
pub async fn resume(ctx: &Ctx, id: KeyId) -> Result<Key, AppError> {
    let resumed = ctx
        .store
        .try_write(id, |tx, id| {
            Box::pin(async move {
                let was_paused = store::keys::mark_resumed(tx, *id).await?;
                let key = store::keys::find(tx, *id).await?;
                let key = key.ok_or_else(|| {
                    AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.")
                })?;
                let act = super::act::on_key("key.resume", *id).before(json!({ "paused": was_paused }));
                note(tx, act.after(json!({ "paused": false })));
                Ok(key)
            })
        })
        .await;
    forget(ctx, id);
    resumed
}
