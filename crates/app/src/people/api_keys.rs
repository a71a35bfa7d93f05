//! The API keys of a person, as the web application manages them, with their webhooks.
//!
//! A session alone can only restrict a key. What gives a key power, or shows a secret, requires a
//! step-up. The step-up is checked first, so that nobody learns whether an id exists: another
//! person's key and a missing one get the same error.

use domain::Timestamp;
use domain::ids::{EventId, KeyId};
use domain::key::{ChosenCaps, IpAllowlist, LimitOverrides, Scopes};
use sha2::{Digest, Sha256};
use store::keys::Key;
use store::webhooks::Delivery;
use uuid::Uuid;

use crate::caller::Caller;
use crate::keys::{self, IssueKey, IssuedKey, Revoked, find_own};
use crate::sessions::{Person, context_of, require_step_up_of_owners};
use crate::webhooks::{self, Rotated};
use crate::{Ctx, PersonError};

/// A key that a person wants.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    pub name: String,
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
    pub ip_allowlist: IpAllowlist,
    pub webhook_url: Option<String>,
    pub is_agent: bool,
}

/// The end of a key after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyEnd {
    /// The present one.
    Kept,
    At(Option<Timestamp>),
}

/// Issues a key with the person's tier, at most once per `form`: a form that is sent twice issues
/// one key. Requires a step-up.
pub async fn issue_api_key(
    ctx: &Ctx,
    person: &Person,
    form: Uuid,
    wanted: NewApiKey,
) -> Result<IssuedKey, PersonError> {
    require_step_up_of_owners(ctx, person).await?;
    let wanted = IssueKey {
        user_id: person.user_id(),
        name: wanted.name,
        tier: person.user().tier,
        scopes: Some(wanted.scopes),
        expires_at: wanted.expires_at,
        ip_allowlist: wanted.ip_allowlist,
        webhook_url: wanted.webhook_url,
        overrides: LimitOverrides::default(),
        api_version: None,
        is_agent: wanted.is_agent,
    };
    Ok(keys::issue_as(&context_of(ctx, person), id_of_form(person, form), wanted).await?)
}

/// Returns the id of the key that a form issues. It also depends on the person. If it were the
/// form's own, a form with the id of another person's key would be refused, and tell that the key
/// exists.
fn id_of_form(person: &Person, form: Uuid) -> KeyId {
    let digest =
        Sha256::new_with_prefix(b"key of a form").chain_update(person.user_id().0).chain_update(form);
    let (digest, mut bytes) = (digest.finalize(), form.into_bytes());
    // Keeps the time in the first half, by which ids are sorted, and the variant bits.
    for (byte, mixed) in bytes.iter_mut().zip(digest).skip(8) {
        *byte = mixed;
    }
    bytes[8] = bytes[8] & 0x3f | 0x80;
    KeyId(Uuid::from_bytes(bytes))
}

/// Sets the addresses that may use a key, and its end. Requires a step-up.
///
/// # Errors
/// A field error if the key has expired: an ended delegation does not come back.
pub async fn set_api_key_access(
    ctx: &Ctx,
    person: &Person,
    id: KeyId,
    (ip_allowlist, end): (IpAllowlist, KeyEnd),
) -> Result<Key, PersonError> {
    require_step_up_of_owners(ctx, person).await?;
    let key = find_own(ctx, person.user_id(), id).await?;
    let expires_at = match end {
        KeyEnd::Kept => key.expires_at,
        KeyEnd::At(expires_at) => expires_at,
    };
    let ctx = &context_of(ctx, person);
    Ok(keys::set_access(ctx, person.user_id(), id, (ip_allowlist, expires_at)).await?)
}

/// Lowers the caps of a key. Needs no step-up, because it only restricts.
///
/// # Errors
/// A field error if a cap is 0 or above the present one.
pub async fn lower_api_key_caps(
    ctx: &Ctx,
    person: &Person,
    id: KeyId,
    caps: ChosenCaps,
) -> Result<Key, PersonError> {
    Ok(keys::lower_caps(&context_of(ctx, person), person.user_id(), id, caps).await?)
}

/// Pauses a key's trading. Needs no step-up, because it only restricts.
pub async fn pause_api_key(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Key, PersonError> {
    let key = find_own(ctx, person.user_id(), id).await?;
    Ok(keys::pause_noted(&context_of(ctx, person), key.id).await?)
}

/// Resumes a key's trading. Requires a step-up.
pub async fn resume_api_key(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Key, PersonError> {
    require_step_up_of_owners(ctx, person).await?;
    let key = find_own(ctx, person.user_id(), id).await?;
    Ok(keys::resume(&context_of(ctx, person), key.id).await?)
}

/// Revokes a key. Needs no step-up: it only restricts, and must be possible in an emergency.
pub async fn revoke_api_key(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Revoked, PersonError> {
    let key = find_own(ctx, person.user_id(), id).await?;
    Ok(keys::revoke(&context_of(ctx, person), key.id).await?)
}

/// Marks a key as an agent's. Needs no step-up, because it only restricts.
pub async fn mark_api_key_as_agent(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Key, PersonError> {
    let key = find_own(ctx, person.user_id(), id).await?;
    Ok(keys::mark_agent(&context_of(ctx, person), key.id).await?)
}

/// Sets or removes the URL that receives a key's events. Requires a step-up: a receiver reads all
/// events of the key.
pub async fn set_api_key_webhook(
    ctx: &Ctx,
    person: &Person,
    id: KeyId,
    url: Option<String>,
) -> Result<Key, PersonError> {
    match &url {
        Some(_) => require_step_up_of_owners(ctx, person).await?,
        None => person.require_step_up(ctx.now())?,
    }
    let key = find_own(ctx, person.user_id(), id).await?;
    Ok(webhooks::set_webhook_url(&context_of(ctx, person), key.id, url).await?)
}

/// Replaces the secret that signs a key's webhooks. Requires a step-up.
pub async fn rotate_api_key_secret(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Rotated, PersonError> {
    require_step_up_of_owners(ctx, person).await?;
    let key = find_own(ctx, person.user_id(), id).await?;
    Ok(webhooks::rotate(&context_of(ctx, person), key.id).await?)
}

/// Queues a test event for a key's receiver.
pub async fn send_api_key_test(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Delivery, PersonError> {
    let key = find_own(ctx, person.user_id(), id).await?;
    Ok(webhooks::queue_test(ctx, &Caller::new(key.into(), person.session().ip)).await?)
}

/// Adds an event of one of the person's keys to the end of its queue again.
pub async fn redeliver_event(ctx: &Ctx, person: &Person, id: EventId) -> Result<Delivery, PersonError> {
    Ok(webhooks::replay(ctx, person.user_id(), id).await?)
}
