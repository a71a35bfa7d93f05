//! What the audit log says about keys: never the key itself, its digest or its webhook secret.

use domain::ids::KeyId;
use serde_json::{Value, json};
use store::audit_log::Act;
use store::keys::Key;

/// An act on a key.
pub fn on_key(action: &'static str, id: KeyId) -> Act {
    Act::new(action, format!("key:{id}"))
}

/// What a key may do.
pub fn state_of(key: &Key) -> Value {
    let usdc = |limit: Option<domain::Usdc>| limit.map(|usdc| usdc.to_string());
    json!({
        "userId": key.user_id,
        "name": key.name,
        "tier": key.tier.as_str(),
        "scopes": key.scopes.to_string(),
        "keyIndex": key.key_index,
        "ipAllowlist": key.ip_allowlist.to_string(),
        "webhookHost": host_of(key.webhook_url.as_deref()),
        "requestsPerMinute": key.overrides.requests_per_minute,
        "dailyUsdcAtomic": usdc(key.overrides.daily),
        "perTradeUsdcAtomic": usdc(key.overrides.per_trade),
        "highValueUsdcAtomic": usdc(key.overrides.high_value),
        "expiresAt": key.expires_at,
    })
}

/// The scheme and the host of a URL. Its path and its query may be secrets of the receiver.
pub fn host_of(url: Option<&str>) -> Option<String> {
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
