//! Pausing a key's trading: the caller's own emergency stop.
//!
//! From the instant at which the pause is stored the key creates and confirms no trade, in any process: creation asks in
//! the statement that writes the trade, confirming and signing in their transactions. Trades that wait to be signed are
//! rejected; those that are signed already are the chain's to decide. Reads go on. The operator resumes the key.
//!
//! A key that was revoked or has expired is stopped in the same places, and for good.

use domain::ids::KeyId;
use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::StoreError;
use store::audit_log::note;
use store::keys::{Key, TradingStop};

use super::Caller;
use crate::{AppError, Ctx, Submission};

/// The refusal of a trade with a key that makes none.
pub fn stopped(stop: TradingStop) -> AppError {
    let code = match stop {
        TradingStop::Revoked => ErrorCode::ApiKeyRevoked,
        TradingStop::Expired => ErrorCode::ApiKeyExpired,
        TradingStop::Paused => ErrorCode::ApiKeyPaused,
    };
    AppError::new(code).submission(Submission::NotSubmitted)
}

/// Pauses the trading of the caller's key and gives since when it is paused. Doing it again changes nothing.
pub async fn pause(ctx: &Ctx, caller: &Caller) -> Result<Timestamp, AppError> {
    let input = (caller.key.id, ctx.now());
    let since: Result<Option<Timestamp>, StoreError> = ctx
        .write_of_user(caller.user_id(), input, |tx, (id, now)| {
            Box::pin(store::keys::mark_paused(tx, *id, *now))
        })
        .await;
    let since = since
        .map_err(|error| AppError::from(error).of_one_unit())?
        .ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
    ctx.key_cache.forget(caller.key.id);
    // What waits to be signed is rejected at once.
    ctx.wake.executor.notify_waiters();
    Ok(since)
}

/// Lets a paused key trade again. Doing it again changes nothing.
pub async fn resume(ctx: &Ctx, id: KeyId) -> Result<Key, AppError> {
    let resumed = ctx
        .store
        .write(id, |tx, id| {
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
    ctx.key_cache.forget(id);
    resumed
}
