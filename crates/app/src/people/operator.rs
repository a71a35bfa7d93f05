//! The operator's changes to users: role, tier and sessions.

use domain::ErrorCode;
use domain::credential::Role;
use domain::ids::UserId;
use domain::key::Tier;
use serde_json::json;
use store::Tx;
use store::audit_log::{Act, note};
use store::users::User;

use crate::{AppError, Ctx};

/// Changes a user's role.
///
/// # Errors
/// `VALIDATION_FAILED` if the user is to become an admin but has no passkey.
pub async fn set_role(ctx: &Ctx, id: UserId, role: Role) -> Result<User, AppError> {
    let changed = ctx
        .store
        .try_write((id, role), |tx, (id, role)| {
            Box::pin(async move {
                let before = lock_user(tx, *id).await?;
                let credentials = store::credentials::list(tx, *id).await?;
                let has_passkey = credentials.iter().any(|credential| credential.passkey_id.is_some());
                if *role == Role::Admin && !has_passkey {
                    return Err(AppError::new(ErrorCode::ValidationFailed)
                        .detail("An admin must have a passkey. The user must add one first."));
                }
                store::users::set_role(tx, *id, *role).await?;
                let act = Act::new("user.role", format!("user:{id}")).before(json!({ "role": before.role }));
                note(tx, act.after(json!({ "role": role })));
                Ok(User { role: *role, ..before })
            })
        })
        .await;
    ctx.process.session_cache.forget(id);
    changed
}

/// Changes the tier of a user's web key.
pub async fn set_tier(ctx: &Ctx, id: UserId, tier: Tier) -> Result<User, AppError> {
    let changed = ctx
        .store
        .try_write((id, tier), |tx, (id, tier)| {
            Box::pin(async move {
                let before = lock_user(tx, *id).await?;
                store::users::set_tier(tx, *id, *tier).await?;
                let act = Act::new("user.tier", format!("user:{id}")).before(json!({ "tier": before.tier }));
                note(tx, act.after(json!({ "tier": tier })));
                Ok(User { tier: *tier, ..before })
            })
        })
        .await;
    ctx.process.session_cache.forget(id);
    changed
}

/// Ends all sessions of a user. Returns their number.
pub async fn end_sessions(ctx: &Ctx, id: UserId) -> Result<u64, AppError> {
    let ended = ctx
        .store
        .try_write((id, ctx.now()), |tx, (id, now)| {
            Box::pin(async move {
                lock_user(tx, *id).await?;
                let ended = store::sessions::mark_all_ended(tx, *id, *now).await?;
                note(
                    tx,
                    Act::new("user.end-sessions", format!("user:{id}")).after(json!({ "ended": ended })),
                );
                Ok::<_, AppError>(ended)
            })
        })
        .await;
    ctx.process.session_cache.forget(id);
    ended
}

async fn lock_user(tx: &mut Tx, id: UserId) -> Result<User, AppError> {
    store::users::lock(tx, id).await?;
    let found = store::users::find(tx, id).await?;
    found.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound).detail("There is no user with this id."))
}
