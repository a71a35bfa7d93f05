//! Who is calling. The same path for unknown, revoked and expired keys up to the decision.

use std::net::IpAddr;
use std::sync::Arc;

use domain::ErrorCode;
use domain::ids::UserId;
use domain::key::{KeyLimits, PlaintextKey, Scope};
use store::keys::Key;

use super::cache;
use crate::{AppError, Ctx};

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key that it came with.
    pub key: Arc<Key>,
}

impl Caller {
    /// Whose key it is.
    pub fn user_id(&self) -> UserId {
        self.key.user_id
    }

    /// The key's limits.
    pub fn limits(&self) -> KeyLimits {
        self.key.limits()
    }

    /// Refuses where the key lacks `scope`.
    pub fn require(&self, scope: Scope) -> Result<(), AppError> {
        if self.key.scopes.contains(scope) {
            return Ok(());
        }
        let detail = format!("This key lacks the scope {}, which this route asks for.", scope.as_str());
        let refusal = AppError::new(ErrorCode::InsufficientScope).of_key(self.key.id).detail(detail);
        Err(refusal.with("requiredScope", scope.as_str()))
    }
}

/// Judges the `X-API-Key` header of a request from `ip`: syntax, look-up, revocation, expiry, allowlist, in this order. A
/// refusal of a key that was found says which it is.
pub async fn authenticate(ctx: &Ctx, header: Option<&str>, ip: IpAddr) -> Result<Caller, AppError> {
    let text = header.ok_or_else(|| AppError::new(ErrorCode::ApiKeyMissing))?;
    let plaintext: PlaintextKey = text.parse().map_err(|_| AppError::new(ErrorCode::ApiKeyMalformed))?;
    let digest = hex::encode(plaintext.digest(&ctx.config.key_pepper));
    let key = match cache::find(ctx, digest).await? {
        Some(key) if plaintext.environment() == ctx.config.environment => key,
        _ => return Err(AppError::new(ErrorCode::ApiKeyInvalid)),
    };
    let refusal = |code| Err(AppError::new(code).of_key(key.id));
    if key.revoked_at.is_some() {
        return refusal(ErrorCode::ApiKeyRevoked);
    }
    if key.expires_at.is_some_and(|expires_at| expires_at <= ctx.now()) {
        return refusal(ErrorCode::ApiKeyExpired);
    }
    if !key.ip_allowlist.allows(ip) {
        return refusal(ErrorCode::IpNotAllowed);
    }
    Ok(Caller { key })
}
