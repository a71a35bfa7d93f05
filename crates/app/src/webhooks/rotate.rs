//! Rotating the secret that signs a key's deliveries.

use domain::ids::KeyId;
use domain::webhook::{Cooldown, WebhookSecret, may_rotate, previous_expires_at};
use domain::{ErrorCode, Timestamp};

use crate::keys::webhook_secret;
use crate::{AppError, Ctx};

/// A new secret. It exists only here and cannot be had again.
#[derive(Debug, Clone)]
pub struct Rotated {
    /// The secret.
    pub secret: WebhookSecret,
    /// Since when it signs.
    pub rotated_at: Timestamp,
    /// Until when the one before it signs too.
    pub previous_expires_at: Timestamp,
}

/// Puts a new secret in the place of the key's: `WEBHOOK_SECRET_ROTATION_COOLDOWN` where the last rotation is less than a
/// minute ago.
pub async fn rotate_secret(ctx: &Ctx, key_id: KeyId) -> Result<Rotated, AppError> {
    let (secret, rotated_at) = (WebhookSecret::from_bytes(ctx.random()), ctx.now());
    let previous_expires_at = previous_expires_at(rotated_at);
    let sealed = webhook_secret::seal(ctx, key_id, &secret)?;
    ctx.store
        .write((key_id, sealed, rotated_at, previous_expires_at), |tx, (key_id, sealed, now, until)| {
            Box::pin(async move {
                let secrets = store::webhooks::lock_secrets(tx, *key_id).await?;
                let secrets = secrets.ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
                may_rotate(secrets.rotated_at, *now).map_err(cooldown)?;
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
