//! The API keys of a person, as the web application manages them.

use domain::ErrorCode;
use domain::ids::{KeyId, UserId};
use domain::key::{ChosenCaps, KeyKind};
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
    let is_own = |key: &Key| key.user_id == user_id && key.kind == KeyKind::Api && key.revoked_at.is_none();
    found.filter(is_own).ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))
}

/// Lowers the caps of a key. Needs no signature of an owner, because it only restricts.
///
/// # Errors
/// A field error if a cap is 0 or above the present one. `RESOURCE_NOT_FOUND` if the user has no such
/// key.
pub async fn lower_caps(ctx: &Ctx, user_id: UserId, id: KeyId, caps: ChosenCaps) -> Result<Key, AppError> {
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
