//! The API keys of a user.

use domain::ids::{KeyId, UserId};
use domain::key::{ChosenCaps, IpAllowlist, KeyKind};
use domain::{ErrorCode, Timestamp};
use store::audit_log::note;
use store::keys::Key;

use super::choose_caps;
use crate::{AppError, Ctx};

/// Lists the user's API keys that are not revoked, oldest first.
pub async fn list_own(ctx: &Ctx, user_id: UserId) -> Result<Vec<Key>, AppError> {
    let mut keys = ctx.store.read(user_id, |tx, id| Box::pin(store::keys::list(tx, *id))).await?;
    keys.retain(|key| key.kind == KeyKind::Api && key.revoked_at.is_none());
    Ok(keys)
}

/// Returns an API key of the user.
///
/// # Errors
/// `RESOURCE_NOT_FOUND` for another user's key, and for a revoked one.
pub async fn find_own(ctx: &Ctx, user_id: UserId, id: KeyId) -> Result<Key, AppError> {
    let found = ctx.store.read(id, |tx, id| Box::pin(store::keys::find(tx, *id))).await?;
    found.filter(|key| is_own(key, user_id)).ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))
}

fn is_own(key: &Key, user_id: UserId) -> bool {
    key.user_id == user_id && key.kind == KeyKind::Api && key.revoked_at.is_none()
}

/// Sets the addresses that may use a key of the user, and its end.
///
/// # Errors
/// A field error if the key has expired: an ended delegation does not come back. `RESOURCE_NOT_FOUND`
/// if the user has no such key.
pub(crate) async fn set_access(
    ctx: &Ctx,
    user_id: UserId,
    id: KeyId,
    (ip_allowlist, expires_at): (IpAllowlist, Option<Timestamp>),
) -> Result<Key, AppError> {
    let input = (user_id, id, ip_allowlist, expires_at, ctx.now());
    let changed = ctx
        .store
        .try_write(input, |tx, (user_id, id, ip_allowlist, expires_at, now)| {
            Box::pin(async move {
                let found = store::keys::find(tx, *id).await?.filter(|key| is_own(key, *user_id));
                let key = found.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))?;
                if key.expires_at.is_some_and(|end| end <= *now) {
                    return Err(AppError::field("/expires", "must be that of a key that has not expired"));
                }
                let after =
                    Key { ip_allowlist: ip_allowlist.clone(), expires_at: *expires_at, ..key.clone() };
                store::keys::set_access(tx, *id, &after.ip_allowlist, after.expires_at).await?;
                let act = super::act::on_key("key.access", *id).before(super::act::state_of(&key));
                note(tx, act.after(super::act::state_of(&after)));
                Ok(after)
            })
        })
        .await;
    super::pause::forget(ctx, id);
    changed
}

/// Lowers the caps of a key. Needs no signature of an owner, because it only restricts.
///
/// # Errors
/// A field error if a cap is 0 or above the present one. `RESOURCE_NOT_FOUND` if the user has no such
/// key.
pub(crate) async fn lower_caps(
    ctx: &Ctx,
    user_id: UserId,
    id: KeyId,
    caps: ChosenCaps,
) -> Result<Key, AppError> {
    let present = find_own(ctx, user_id, id).await?.limits();
    for (pointer, chosen, cap) in
        [("/perTrade", caps.per_trade, present.per_trade), ("/daily", caps.daily, present.daily)]
    {
        if chosen.is_some_and(|chosen| chosen > cap) {
            return Err(AppError::field(pointer, &format!("must be at most the present cap, {cap}")));
        }
    }
    choose_caps(ctx, user_id, id, caps).await
}
