//! Who is calling. The same path for unknown, revoked and expired keys up to the decision.

use std::net::IpAddr;
use std::sync::Arc;

use domain::ids::UserId;
use domain::key::{KeyLimits, PlaintextKey, Scope};
use domain::{ErrorCode, Timestamp};
use store::StoreError;
use store::keys::Key;

use super::{allowlists, cache};
use crate::limits::KeyMark;
use crate::{AppError, Ctx, limits};

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

/// Whether a refusal with this code is a failed authentication, which counts towards the address's lockout. A request
/// without any key tries nothing.
pub const fn is_failed_authentication(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ApiKeyMalformed
            | ErrorCode::ApiKeyInvalid
            | ErrorCode::ApiKeyRevoked
            | ErrorCode::ApiKeyExpired
            | ErrorCode::IpNotAllowed
            | ErrorCode::RequestSignatureInvalid
    )
}

/// Judges the `X-API-Key` header of a request from `ip`: syntax, the address's lockout, look-up, revocation, expiry,
/// allowlist, in this order.
///
/// From a locked-out address a key passes if it was used successfully from there in the last 24 hours, or if its allowlist
/// names the address. Every other request gets the lockout's refusal without a look-up, so it learns nothing of its key.
/// Failures are counted where the refusal is answered: [`is_failed_authentication`].
pub async fn authenticate(ctx: &Ctx, header: Option<&str>, ip: IpAddr) -> Result<Caller, AppError> {
    let text = header.ok_or_else(|| AppError::new(ErrorCode::ApiKeyMissing))?;
    let plaintext: PlaintextKey = text.parse().map_err(|_| AppError::new(ErrorCode::ApiKeyMalformed))?;
    let now = ctx.now();
    let digest = plaintext.digest(&ctx.config.key_pepper);
    let judged = judge(ctx, &plaintext, &digest, ip, now);
    match ctx.limits.shut_out(ip, now).await {
        Ok(None) => judged.await,
        Ok(Some(until)) => {
            let refusal = || limits::shut_out(until, now);
            if !passes_lockout(ctx, KeyMark::of(&digest), ip, now).await {
                return Err(refusal());
            }
            judged.await.map_err(|error| if is_failed_authentication(error.code) { refusal() } else { error })
        }
        // Its user's limiter is asked next and is kept in the same place: a good key passes only once that answers. A failure
        // that cannot be counted is not reported.
        Err(unavailable) => judged.await.map_err(|_| unavailable.into()),
    }
}

/// Notes that a request from `ip` was authenticated, its signature included.
pub async fn note_success(ctx: &Ctx, plaintext: &str, ip: IpAddr) {
    if let Ok(key) = plaintext.parse::<PlaintextKey>() {
        let mark = KeyMark::of(&key.digest(&ctx.config.key_pepper));
        ctx.limits.note_success(ip, mark, ctx.now()).await;
    }
}

/// Whether the key may be looked up although the address is locked out.
async fn passes_lockout(ctx: &Ctx, key: KeyMark, ip: IpAddr, now: Timestamp) -> bool {
    let familiar = ctx.limits.is_familiar(ip, key, now).await;
    familiar.unwrap_or(false) || allowlists::name(ctx, key, ip, now).await
}

/// The caller as it is now, where its request is answered over a long time: revocation, expiry, allowlist.
pub async fn judge_again(ctx: &Ctx, caller: &Caller, ip: IpAddr) -> Result<Caller, AppError> {
    let id = caller.key.id;
    let read: Result<Option<Key>, StoreError> =
        ctx.store.read(id, |tx, id| Box::pin(store::keys::find(tx, *id))).await;
    let key = read?.ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
    judge_row(Arc::new(key), ip, ctx.now())
}

/// Look-up, revocation, expiry, allowlist. A refusal of a key that was found says which it is.
async fn judge(
    ctx: &Ctx,
    plaintext: &PlaintextKey,
    digest: &[u8; 32],
    ip: IpAddr,
    now: Timestamp,
) -> Result<Caller, AppError> {
    let key = match cache::find(ctx, alloy_primitives::hex::encode(digest), now).await? {
        Some(key) if plaintext.environment() == ctx.config.environment => key,
        _ => return Err(AppError::new(ErrorCode::ApiKeyInvalid)),
    };
    judge_row(key, ip, now)
}

fn judge_row(key: Arc<Key>, ip: IpAddr, now: Timestamp) -> Result<Caller, AppError> {
    let refusal = |code| Err(AppError::new(code).of_key(key.id));
    if key.revoked_at.is_some() {
        return refusal(ErrorCode::ApiKeyRevoked);
    }
    if key.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return refusal(ErrorCode::ApiKeyExpired);
    }
    if !key.ip_allowlist.allows(ip) {
        return refusal(ErrorCode::IpNotAllowed);
    }
    Ok(Caller { key })
}
