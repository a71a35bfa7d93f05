//! The webhook URLs of keys. They are validated when they are set, and the sender checks them again
//! before every delivery.

use domain::ErrorCode;
use domain::ids::KeyId;
use domain::webhook::target::{Target, TargetPolicy};
use serde_json::json;
use store::audit_log::{Act, note};
use store::keys::Key;

use crate::{AppError, Ctx};

/// Rejects a URL that events must not be sent to. `field` is its path in the request.
pub fn check_url(policy: &TargetPolicy, field: &str, url: &str) -> Result<(), AppError> {
    Target::parse(url, policy).map(drop).map_err(|refusal| AppError::field(field, &refusal.to_string()))
}

/// Sets or removes the URL that receives a key's events. Events without a URL at the time they
/// happen are never sent. Waiting events are sent to the new URL at once, regardless of the former
/// receiver's failures.
pub async fn set_webhook_url(ctx: &Ctx, key_id: KeyId, url: Option<String>) -> Result<Key, AppError> {
    if let Some(url) = &url {
        check_url(&ctx.config.webhooks.targets, "/webhookUrl", url)?;
    }
    let set = ctx
        .store
        .try_write((key_id, url, ctx.now()), |tx, (key_id, url, now)| {
            Box::pin(async move {
                let old = store::keys::find(tx, *key_id).await?;
                store::keys::set_webhook_url(tx, *key_id, url.as_deref()).await?;
                // A running attempt, the breaker and the backoff belong to the former receiver.
                if old.as_ref().is_some_and(|old| old.webhook_url != *url) {
                    store::webhooks::end_hold(tx, *key_id).await?;
                }
                store::webhooks::begin_anew(tx, *key_id, *now).await?;
                let key = store::keys::find(tx, *key_id).await?;
                let key = key.ok_or_else(|| {
                    AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.")
                })?;
                let host = |url: Option<&String>| json!({ "webhookHost": host_of(url.map(String::as_str)) });
                let act = Act::new("key.webhook", format!("key:{key_id}"));
                let act = act.before(host(old.as_ref().and_then(|old| old.webhook_url.as_ref())));
                note(tx, act.after(host(key.webhook_url.as_ref())));
                Ok(key)
            })
        })
        .await;
    ctx.process.key_cache.forget(key_id);
    set
}

/// Returns the scheme and host of a URL. The path and query are left out because they may contain
/// secrets of the receiver.
pub(crate) fn host_of(url: Option<&str>) -> Option<String> {
    let (scheme, rest) = url?.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_a_webhook_url_is_logged() {
        let host = |url| host_of(Some(url));
        assert_eq!(host("https://h.example/services/SECRET?t=x").as_deref(), Some("https://h.example"));
        assert_eq!(host("https://user:pass@h.example:8443").as_deref(), Some("https://h.example:8443"));
        assert_eq!(host("nothing"), None);
        assert_eq!(host_of(None), None);
    }
}
