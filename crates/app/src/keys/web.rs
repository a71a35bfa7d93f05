//! Web keys: the keys that trades of the web application are made with, one per user. A web key has
//! no plaintext, so no request can be authenticated with it.

use domain::Usdc;
use domain::ids::{KeyId, UserId};
use domain::key::{ChosenCaps, IpAllowlist, KeyKind, LimitOverrides, Scope, Scopes, Tier};
use domain::webhook::WebhookSecret;
use sha2::{Digest, Sha256};
use store::audit_log::note;
use store::keys::Key;
use store::{StoreError, Tx};

use crate::{AppError, Ctx, webhooks};

/// The scopes that the pages need.
const SCOPES: [Scope; 6] = [
    Scope::MarketsRead,
    Scope::MarketsQuote,
    Scope::PortfolioRead,
    Scope::TradesRead,
    Scope::TradesWrite,
    Scope::AuthManage,
];

/// A web key before it is stored.
#[derive(Debug, Clone)]
pub struct NewWebKey {
    key: Key,
    digest: String,
    webhook_secret_sealed: String,
}

impl NewWebKey {
    pub const fn user_id(&self) -> UserId {
        self.key.user_id
    }
}

/// Prepares the web key of a user.
pub fn new_web_key(ctx: &Ctx, user_id: UserId, tier: Tier) -> Result<NewWebKey, AppError> {
    let id = KeyId(ctx.uuid());
    let secret = WebhookSecret::from_bytes(ctx.random());
    let webhook_secret_sealed = webhooks::secret::seal(ctx, id, &secret)?;
    let key = Key {
        id,
        user_id,
        kind: KeyKind::Web,
        hint: None,
        name: "Web application".to_owned(),
        tier,
        scopes: Scopes::of(&SCOPES),
        key_index: 0,
        ip_allowlist: IpAllowlist::default(),
        webhook_url: None,
        overrides: LimitOverrides::default(),
        chosen: ChosenCaps::default(),
        expires_at: None,
        revoked_at: None,
        created_at: ctx.now(),
        paused_at: None,
        api_version: None,
        is_agent: false,
    };
    // The digest of random bytes that are discarded: no plaintext has it.
    let digest = hex::encode(Sha256::digest(ctx.random::<32>()));
    Ok(NewWebKey { key, digest, webhook_secret_sealed })
}

/// Inserts a web key with the next free index. The caller holds the lock on the user's row.
pub async fn insert_web_key(tx: &mut Tx, new: &NewWebKey) -> Result<(), StoreError> {
    let (_, key_index) = store::keys::count_active(tx, new.key.user_id, new.key.created_at).await?;
    let key = Key { key_index, ..new.key.clone() };
    store::keys::insert(tx, &key, &new.digest, &new.webhook_secret_sealed).await?;
    note(tx, super::act::on_key("key.issue", key.id).after(super::act::state_of(&key)));
    Ok(())
}

/// Sets the caps that a user has chosen for a key. They take effect for new trades at once; the
/// policy on chain changes separately.
///
/// # Errors
/// A field error if a cap is 0 or above the tier's. `RESOURCE_NOT_FOUND` if the user has no such
/// key.
pub async fn choose_caps(ctx: &Ctx, user_id: UserId, id: KeyId, chosen: ChosenCaps) -> Result<Key, AppError> {
    let changed = ctx
        .store
        .try_write((user_id, id, chosen), |tx, (user_id, id, chosen)| {
            Box::pin(async move {
                let found = store::keys::find(tx, *id).await?.filter(|key| key.user_id == *user_id);
                let key = found.ok_or_else(|| AppError::new(domain::ErrorCode::ResourceNotFound))?;
                let most = key.tier.limits(&key.overrides);
                check_cap("/daily", chosen.daily, most.daily)?;
                check_cap("/perTrade", chosen.per_trade, most.per_trade)?;
                store::keys::set_chosen_caps(tx, *user_id, *id, chosen).await?;
                store::owner_acts::forget_caps(tx, *user_id, *id).await?;
                let after = Key { chosen: *chosen, ..key.clone() };
                let act = super::act::on_key("key.caps", *id).before(super::act::state_of(&key));
                note(tx, act.after(super::act::state_of(&after)));
                Ok(after)
            })
        })
        .await;
    super::pause::forget(ctx, id);
    changed
}

fn check_cap(pointer: &str, chosen: Option<Usdc>, most: Usdc) -> Result<(), AppError> {
    match chosen {
        Some(cap) if cap == Usdc::ZERO || cap > most => {
            Err(AppError::field(pointer, &format!("must be above 0 and at most {most}")))
        }
        _ => Ok(()),
    }
}
