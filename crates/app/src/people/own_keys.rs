//! What a person changes about their API keys and their account. Whatever could give the thief of a
//! session more than the session requires a step-up. Whatever only restricts does not.

use chain::AccountOwner;
use domain::Timestamp;
use domain::ids::KeyId;
use domain::key::{IpAllowlist, LimitOverrides, Scopes};
use store::keys::Key;

use crate::keys::{self, IssueKey, IssuedKey};
use crate::sessions::{Person, context_of};
use crate::webhooks::{self, Rotated};
use crate::{Ctx, PersonError, owner_acts};

/// A key that a person asks for. The tier is the person's own, and so are its limits.
#[derive(Debug, Clone)]
pub struct OwnKey {
    pub name: String,
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
    pub ip_allowlist: IpAllowlist,
    pub webhook_url: Option<String>,
}

/// Issues a key. Requires a step-up.
pub async fn issue_key(
    ctx: &Ctx,
    person: &Person,
    id: KeyId,
    wanted: OwnKey,
) -> Result<IssuedKey, PersonError> {
    person.require_step_up(ctx.now())?;
    let OwnKey { name, scopes, expires_at, ip_allowlist, webhook_url } = wanted;
    let wanted = IssueKey {
        user_id: person.user_id(),
        name,
        tier: person.user().tier,
        scopes: Some(scopes),
        expires_at,
        ip_allowlist,
        webhook_url,
        overrides: LimitOverrides::default(),
        api_version: None,
    };
    Ok(keys::issue_as(&context_of(ctx, person), id, wanted).await?)
}

/// Sets the addresses that may use a key of the person, and its end. Requires a step-up.
pub async fn set_key_access(
    ctx: &Ctx,
    person: &Person,
    id: KeyId,
    access: (IpAllowlist, Option<Timestamp>),
) -> Result<Key, PersonError> {
    person.require_step_up(ctx.now())?;
    Ok(keys::set_access(&context_of(ctx, person), person.user_id(), id, access).await?)
}

/// Resumes trading of a key of the person. Requires a step-up.
pub async fn resume_key(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Key, PersonError> {
    own_key(ctx, person, id).await?;
    Ok(keys::resume(&context_of(ctx, person), id).await?)
}

/// Sets or removes the URL of a key's webhook. Requires a step-up: events go there.
pub async fn set_webhook_url(
    ctx: &Ctx,
    person: &Person,
    id: KeyId,
    url: Option<String>,
) -> Result<Key, PersonError> {
    own_key(ctx, person, id).await?;
    Ok(webhooks::set_webhook_url(&context_of(ctx, person), id, url).await?)
}

/// Replaces the secret of a key's webhook. Requires a step-up.
pub async fn rotate_webhook_secret(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Rotated, PersonError> {
    own_key(ctx, person, id).await?;
    Ok(webhooks::rotate_secret(&context_of(ctx, person), id).await?)
}

/// Stores the owner to add with the act that deploys the account. `None` removes the choice. Requires
/// a step-up.
pub async fn choose_second_owner(
    ctx: &Ctx,
    person: &Person,
    owner: Option<AccountOwner>,
) -> Result<(), PersonError> {
    person.require_step_up(ctx.now())?;
    Ok(owner_acts::choose_second_owner(&context_of(ctx, person), person.user_id(), owner).await?)
}

/// Returns a key of a person who has stepped up.
async fn own_key(ctx: &Ctx, person: &Person, id: KeyId) -> Result<Key, PersonError> {
    person.require_step_up(ctx.now())?;
    Ok(keys::find_own(ctx, person.user_id(), id).await?)
}
