//! Rotates the secret that signs a key's deliveries.

use domain::ids::KeyId;
use domain::key::Scope;
use domain::webhook::{Cooldown, WebhookSecret, may_rotate, previous_expires_at};
use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::audit_log::{Act, note};

use super::secret;
use crate::caller::Caller;
use crate::{AppError, Ctx};

/// A new secret. The plain text is returned once and cannot be read again.
#[derive(Debug, Clone)]
pub struct Rotated {
    pub secret: WebhookSecret,
    /// The time from which the new secret signs.
    pub rotated_at: Timestamp,
    /// The time until which the previous secret signs too.
    pub previous_expires_at: Timestamp,
}

/// Replaces the secret of the caller's key.
///
/// # Errors
/// `WEBHOOK_SECRET_ROTATION_COOLDOWN` if the last rotation was less than a minute ago.
pub async fn rotate_secret(ctx: &Ctx, caller: &Caller) -> Result<Rotated, AppError> {
    caller.require(Scope::WebhooksManage)?;
    rotate(&caller.acting(ctx), caller.key.id).await
}

/// Replaces a key's secret for the actor of the context.
pub(crate) async fn rotate(ctx: &Ctx, key_id: KeyId) -> Result<Rotated, AppError> {
    let (secret, rotated_at) = (WebhookSecret::from_bytes(ctx.random()), ctx.now());
    let previous_expires_at = previous_expires_at(rotated_at);
    let sealed = secret::seal(ctx, key_id, &secret)?;
    ctx.store
        .try_write((key_id, sealed, rotated_at, previous_expires_at), |tx, (key_id, sealed, now, until)| {
            Box::pin(async move {
                // Locked, so that of two concurrent rotations the second one sees the cooldown.
                let secrets = store::webhooks::lock_secrets(tx, *key_id).await?;
                let secrets = secrets.ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
                may_rotate(secrets.rotated_at, *now).map_err(cooldown)?;
                let act = Act::new("key.webhook-secret", format!("key:{key_id}"));
                let act = act.before(json!({ "rotatedAt": secrets.rotated_at }));
                note(tx, act.after(json!({ "rotatedAt": now })));
                Ok::<_, AppError>(store::webhooks::rotate(tx, *key_id, sealed, *now, *until).await?)
            })
        })
        .await
        .map_err(AppError::of_one_unit)?;
    Ok(Rotated { secret, rotated_at, previous_expires_at })
}

fn cooldown(Cooldown { retry_after_s }: Cooldown) -> AppError {
    AppError::new(ErrorCode::WebhookSecretRotationCooldown)
        .retry_after_s(u32::try_from(retry_after_s).unwrap_or(u32::MAX))
}
