//! Where a key's events go.

use domain::ErrorCode;
use domain::ids::KeyId;
use serde_json::json;
use store::audit_log::note;
use store::keys::Key;

use super::act::{host_of, on_key};
use crate::{AppError, Ctx, webhooks};

/// Sets where a key's events go from now on, or that they go nowhere. Events that happened while there was no URL are not
/// sent afterwards; what waits at that moment goes to the new URL at once, whatever the former receiver did.
pub async fn set_webhook_url(ctx: &Ctx, key_id: KeyId, url: Option<String>) -> Result<Key, AppError> {
    if let Some(url) = &url {
        webhooks::check_url(&ctx.config.webhooks.targets, "/webhookUrl", url)?;
    }
    let set = ctx
        .store
        .write((key_id, url, ctx.now()), |tx, (key_id, url, now)| {
            Box::pin(async move {
                let old = store::keys::find(tx, *key_id).await?;
                store::keys::set_webhook_url(tx, *key_id, url.as_deref()).await?;
                store::webhooks::begin_anew(tx, *key_id, *now).await?;
                let key = store::keys::find(tx, *key_id).await?;
                let key = key.ok_or_else(|| {
                    AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.")
                })?;
                let host = |url: Option<&String>| json!({ "webhookHost": host_of(url.map(String::as_str)) });
                let act = on_key("key.webhook", *key_id);
                let act = act.before(host(old.as_ref().and_then(|old| old.webhook_url.as_ref())));
                note(tx, act.after(host(key.webhook_url.as_ref())));
                Ok(key)
            })
        })
        .await;
    ctx.key_cache.forget(key_id);
    set
}
