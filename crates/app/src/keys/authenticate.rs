//! Authentication by API key. Unknown, revoked and expired keys take the same path up to the
//! decision.

use std::net::IpAddr;
use std::sync::Arc;

use domain::key::PlaintextKey;
use domain::{ErrorCode, Timestamp};
use store::keys::Key;

use crate::caller::Caller;
use crate::limits::{FailureKind, KeyMark};
use crate::{AppError, Ctx, limits};

/// Returns whether this code is a failed authentication, which counts towards the address's
/// lockout. A request without a key does not count.
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

/// Authenticates a request from `ip` by its `X-API-Key` header. Checks the syntax, the address's
/// lockout, existence, revocation, expiry and allowlist, in this order.
///
/// A key passes the lockout if it was used successfully from this address in the last 24 hours, or
/// if its allowlist includes the address. All other requests get the same lockout error without a
/// lookup, so they reveal nothing about the key. The caller counts failures: see
/// [`is_failed_authentication`].
pub async fn authenticate(ctx: &Ctx, header: Option<&str>, ip: IpAddr) -> Result<Caller, AppError> {
    let text = header.ok_or_else(|| AppError::new(ErrorCode::ApiKeyMissing))?;
    let plaintext: PlaintextKey = text.parse().map_err(|_| AppError::new(ErrorCode::ApiKeyMalformed))?;
    let now = ctx.now();
    let digest = plaintext.digest(ctx.config.pepper()?.expose());
    let checked = check(ctx, &plaintext, &digest, ip, now);
    match ctx.process.limits.shut_out(FailureKind::ApiKey, ip, now).await {
        Ok(None) => checked.await,
        Ok(Some(until)) => {
            let refusal = || limits::shut_out(until, now);
            if !passes_lockout(ctx, KeyMark::of(&digest), ip, now).await {
                return Err(refusal());
            }
            // A failure must look like the lockout too, or it would reveal that the key exists.
            checked
                .await
                .map_err(|error| if is_failed_authentication(error.code) { refusal() } else { error })
        }
        // The user's limiter is next and uses the same storage, so a valid key would be rejected
        // there anyway. A failure that cannot be counted must not be reported as one, because then
        // guesses would be free.
        Err(unavailable) => checked.await.map_err(|_| unavailable.into()),
    }
}

/// Records that a request from `ip` was authenticated, including its signature.
pub async fn note_success(ctx: &Ctx, plaintext: &str, ip: IpAddr) {
    if let (Ok(key), Ok(pepper)) = (plaintext.parse::<PlaintextKey>(), ctx.config.pepper()) {
        let mark = KeyMark::of(&key.digest(pepper.expose()));
        ctx.process.limits.note_success(ip, mark, ctx.now()).await;
    }
}

/// Returns whether the key may be looked up although the address is locked out.
async fn passes_lockout(ctx: &Ctx, key: KeyMark, ip: IpAddr, now: Timestamp) -> bool {
    let familiar = ctx.process.limits.is_familiar(ip, key, now).await;
    familiar.unwrap_or(false) || ctx.process.allowlists.name(&ctx.store, key, ip, now).await
}

/// Checks revocation, expiry and allowlist again, for responses that take a long time (streams).
pub async fn check_again(ctx: &Ctx, caller: &Caller, ip: IpAddr) -> Result<Caller, AppError> {
    let id = caller.key.id;
    let read = ctx.store.read(id, |tx, id| Box::pin(store::keys::find(tx, *id))).await?;
    let key = read.ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
    check_row(Arc::new(key), ip, ctx.now())
}

/// Looks up the key, then checks revocation, expiry and allowlist. An error about a known key
/// includes its id.
async fn check(
    ctx: &Ctx,
    plaintext: &PlaintextKey,
    digest: &[u8; 32],
    ip: IpAddr,
    now: Timestamp,
) -> Result<Caller, AppError> {
    let key = match ctx.process.key_cache.find(&ctx.store, alloy_primitives::hex::encode(digest), now).await?
    {
        Some(key) if plaintext.environment() == ctx.config.environment => key,
        _ => return Err(AppError::new(ErrorCode::ApiKeyInvalid)),
    };
    check_row(key, ip, now)
}

fn check_row(key: Arc<Key>, ip: IpAddr, now: Timestamp) -> Result<Caller, AppError> {
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
    Ok(Caller::new(key, ip))
}
