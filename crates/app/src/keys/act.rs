//! Audit log entries about keys. They never contain the key, its digest or its webhook secret.

use domain::ids::KeyId;
use serde_json::{Value, json};
use store::audit_log::Act;
use store::keys::Key;

use crate::webhooks::host_of;

pub fn on_key(action: &'static str, id: KeyId) -> Act {
    Act::new(action, format!("key:{id}"))
}

/// Returns the key's permissions and limits for the audit log.
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
        "isAgent": key.is_agent,
    })
}
