//! Webhook secrets at rest: sealed for the row of their key, so that one that is copied into another row does not open.

use domain::ErrorCode;
use domain::ids::KeyId;
use domain::webhook::WebhookSecret;

use crate::{AppError, Ctx};

/// A key's secret, as it is stored.
pub fn seal(ctx: &Ctx, key_id: KeyId, secret: &WebhookSecret) -> Result<String, AppError> {
    seal_text(ctx, key_id, secret.expose().as_bytes())
}

/// A key's secret, from how it is stored.
pub fn unseal(ctx: &Ctx, key_id: KeyId, sealed: &str) -> Result<WebhookSecret, AppError> {
    let text = ctx.config.sealing_keys.unseal(sealed, &key_id.to_string()).map_err(internal)?;
    std::str::from_utf8(&text).map_err(internal)?.parse().map_err(internal)
}

/// The same under the current key; none where no key opens it. What the text says does not matter for that.
pub(super) fn reseal(ctx: &Ctx, key_id: KeyId, sealed: &str) -> Result<Option<String>, AppError> {
    match ctx.config.sealing_keys.unseal(sealed, &key_id.to_string()) {
        Ok(text) => seal_text(ctx, key_id, &text).map(Some),
        Err(_) => Ok(None),
    }
}

fn seal_text(ctx: &Ctx, key_id: KeyId, text: &[u8]) -> Result<String, AppError> {
    ctx.config.sealing_keys.seal(text, &key_id.to_string(), ctx.random()).map_err(internal)
}

fn internal(error: impl std::error::Error + Send + Sync + 'static) -> AppError {
    AppError::new(ErrorCode::InternalError).caused_by(error)
}
