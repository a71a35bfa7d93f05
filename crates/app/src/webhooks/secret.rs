//! Webhook secrets at rest. They are encrypted for their key's row, so that a copy in another row
//! cannot be decrypted.

use domain::ids::KeyId;
use domain::webhook::WebhookSecret;
use secrecy::ExposeSecret;

use crate::{AppError, Ctx};

/// Encrypts a key's secret.
pub fn seal(ctx: &Ctx, key_id: KeyId, secret: &WebhookSecret) -> Result<String, AppError> {
    seal_text(ctx, key_id, secret.expose().as_bytes())
}

/// Decrypts a key's secret.
pub fn unseal(ctx: &Ctx, key_id: KeyId, sealed: &str) -> Result<WebhookSecret, AppError> {
    let text = ctx.config.sealing_keys.unseal(sealed, &key_id.to_string()).map_err(AppError::internal)?;
    std::str::from_utf8(text.expose_secret()).map_err(AppError::internal)?.parse().map_err(AppError::internal)
}

/// Encrypts a stored text with the current key. `None` if no key decrypts it. The text does not
/// have to be a valid secret.
pub(super) fn reseal(ctx: &Ctx, key_id: KeyId, sealed: &str) -> Result<Option<String>, AppError> {
    match ctx.config.sealing_keys.unseal(sealed, &key_id.to_string()) {
        Ok(text) => seal_text(ctx, key_id, text.expose_secret()).map(Some),
        Err(_) => Ok(None),
    }
}

fn seal_text(ctx: &Ctx, key_id: KeyId, text: &[u8]) -> Result<String, AppError> {
    ctx.config.sealing_keys.seal(text, &key_id.to_string(), ctx.random()).map_err(AppError::internal)
}
