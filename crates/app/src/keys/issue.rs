//! Issues new keys.

use domain::ids::{KeyId, UserId};
use domain::key::{ChosenCaps, IpAllowlist, KeyKind, LimitOverrides, PlaintextKey, Scopes, Tier};
use domain::webhook::WebhookSecret;
use domain::{ErrorCode, Timestamp};
use store::audit_log::note;
use store::keys::{Key, MAX_ACTIVE};

use crate::accounts::check_name;
use crate::{AppError, Ctx, webhooks};

/// The properties of a new key.
#[derive(Debug, Clone)]
pub struct IssueKey {
    pub user_id: UserId,
    pub name: String,
    pub tier: Tier,
    /// Defaults to the tier's scopes.
    pub scopes: Option<Scopes>,
    pub expires_at: Option<Timestamp>,
    pub ip_allowlist: IpAllowlist,
    /// The URL that receives the key's events.
    pub webhook_url: Option<String>,
    /// Limits that replace the tier's. Only for `enterprise` and `mm`.
    pub overrides: LimitOverrides,
    /// The API version of requests that name none. Defaults to the current version.
    pub api_version: Option<String>,
    /// The key is an agent's. See [`mark_agent`](super::mark_agent).
    pub is_agent: bool,
}

/// A new key. The plaintext and the webhook secret are returned once and cannot be read again.
#[derive(Debug, Clone)]
pub struct IssuedKey {
    /// The stored part.
    pub key: Key,
    pub plaintext: PlaintextKey,
    /// The secret that signs the key's webhooks.
    pub webhook_secret: WebhookSecret,
}

/// Issues a key.
pub async fn issue(ctx: &Ctx, wanted: IssueKey) -> Result<IssuedKey, AppError> {
    issue_as(ctx, KeyId(ctx.uuid()), wanted).await
}

/// Issues a key with this id, at most once: a form that is sent twice issues one key.
///
/// # Errors
/// An invalid state if there is a key with this id.
pub(crate) async fn issue_as(ctx: &Ctx, id: KeyId, wanted: IssueKey) -> Result<IssuedKey, AppError> {
    let has_overrides = wanted.overrides != LimitOverrides::default();
    if has_overrides && !wanted.tier.takes_overrides() {
        return Err(AppError::field("/tier", "must be enterprise or mm if the key overrides limits"));
    }
    check_name(&wanted.name)?;
    if let Some(url) = &wanted.webhook_url {
        webhooks::check_url(&ctx.config.webhooks.targets, "/webhookUrl", url)?;
    }
    let plaintext =
        // Random bytes may not give a valid key; then draw again.
        std::iter::repeat_with(|| PlaintextKey::from_random(ctx.config.environment, &ctx.random::<64>()))
            .find_map(std::convert::identity)
            .ok_or_else(|| AppError::new(ErrorCode::InternalError))?;
    let webhook_secret = WebhookSecret::from_bytes(ctx.random());
    let sealed = webhooks::secret::seal(ctx, id, &webhook_secret)?;
    let digest = hex::encode(plaintext.digest(ctx.config.pepper()?.expose()));
    let now = ctx.now();
    let key = Key {
        id,
        user_id: wanted.user_id,
        kind: KeyKind::Api,
        hint: Some(plaintext.hint().to_owned()),
        name: wanted.name,
        tier: wanted.tier,
        scopes: wanted.scopes.unwrap_or_else(|| wanted.tier.default_scopes()),
        key_index: 0,
        ip_allowlist: wanted.ip_allowlist,
        webhook_url: wanted.webhook_url,
        overrides: wanted.overrides,
        chosen: ChosenCaps::default(),
        expires_at: wanted.expires_at,
        revoked_at: None,
        created_at: now,
        paused_at: None,
        api_version: wanted.api_version,
        is_agent: wanted.is_agent,
    };
    let key = ctx
        .store
        .try_write((key, digest, sealed), |tx, (key, digest, sealed)| {
            Box::pin(async move {
                // Lock the user, so that concurrent requests cannot exceed the limit of active keys
                // together.
                if !store::users::lock(tx, key.user_id).await? {
                    return Err(
                        AppError::new(ErrorCode::ResourceNotFound).detail("There is no user with this id.")
                    );
                }
                if store::keys::find(tx, key.id).await?.is_some() {
                    let state = "this form has issued its key already";
                    return Err(AppError::invalid_state(ErrorCode::ValidationFailed, state));
                }
                let (active, key_index) = store::keys::count_active(tx, key.user_id, key.created_at).await?;
                if active >= MAX_ACTIVE {
                    return Err(AppError::new(ErrorCode::ActiveKeyLimitReached));
                }
                let key = Key { key_index, ..key.clone() };
                store::keys::insert(tx, &key, digest, sealed).await?;
                note(tx, super::act::on_key("key.issue", key.id).after(super::act::state_of(&key)));
                Ok(key)
            })
        })
        .await?;
    Ok(IssuedKey { key, plaintext, webhook_secret })
}
