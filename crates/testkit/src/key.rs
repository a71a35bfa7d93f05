//! API keys of users.

use std::sync::Arc;

use app::caller::Caller;
use app::keys::{IssueKey, issue};
use app::{AppError, Ctx, accounts};
use chain::{Signer, calls, provision};
use domain::ids::UserId;
use domain::key::{IpAllowlist, LimitOverrides, Scopes, Tier};
use store::keys::Key;
use store::trades::Trade;

use crate::{TestApp, TestUser, device};

/// An API key, with the caller that its requests are authenticated as.
#[derive(Clone)]
pub struct TestKey {
    pub caller: Caller,
    /// The key in plain text.
    pub plaintext: String,
    pub(crate) ctx: Ctx,
}

impl TestApp {
    /// Issues a key with its tier's limits and all scopes, not enabled on chain.
    pub async fn disabled_key(&self, user: &TestUser, tier: Tier) -> TestKey {
        self.issue(key_of(user, tier)).await.unwrap()
    }

    /// Issues a key and enables it on chain, so that it can trade.
    pub async fn key(&self, user: &TestUser, tier: Tier) -> TestKey {
        self.key_with(user, tier, LimitOverrides::default()).await
    }

    /// Like [`Self::key`], with overridden limits.
    pub async fn key_with(&self, user: &TestUser, tier: Tier, overrides: LimitOverrides) -> TestKey {
        let key = self.issue(IssueKey { overrides, ..key_of(user, tier) }).await.unwrap();
        self.enable(user, &key).await;
        key
    }

    /// Issues a key.
    pub async fn issue(&self, wanted: IssueKey) -> Result<TestKey, AppError> {
        let issued = issue(&self.ctx, wanted).await?;
        Ok(TestKey {
            caller: Caller::new(Arc::new(issued.key), device().ip),
            plaintext: issued.plaintext.expose().to_owned(),
            ctx: self.ctx.clone(),
        })
    }

    /// Revokes the key's delegation on chain as the account's owner. The key itself remains active.
    pub async fn disable(&self, user: &TestUser, key: &TestKey) {
        let revoke = calls::revoke_policy(user.account, key.caller.key.key_index);
        self.as_owner(user, self.ctx.chain.contracts().gate, revoke).await;
    }

    /// Enables the key on chain as the account's owner. Deploys the account if necessary.
    pub async fn enable(&self, user: &TestUser, key: &TestKey) {
        let keys = [key.caller.key.as_ref().clone()];
        enable_keys(&self.ctx, &self.roles.relayer, &user.owner, user.id, &keys).await;
    }
}

/// Enables keys on chain as the account's first owner, relayed without the service. Deploys the
/// account if necessary.
pub async fn enable_keys(ctx: &Ctx, relayer: &Signer, owner: &Signer, user_id: UserId, keys: &[Key]) {
    let salt = accounts::account_of(ctx, user_id).await.unwrap().salt;
    let now_s = ctx.now().s();
    let deadline_s = provision::signature_deadline_s(&ctx.chain, now_s).await.unwrap();
    let policies: Vec<_> = keys.iter().map(|key| accounts::policy_of(key, deadline_s)).collect();
    provision::provision(&ctx.chain, relayer, owner, salt, &policies, now_s).await.unwrap();
}

/// The default parameters of a test's key.
pub fn key_of(user: &TestUser, tier: Tier) -> IssueKey {
    IssueKey {
        user_id: user.id,
        name: format!("a key of tier {tier}"),
        tier,
        scopes: Some(Scopes::all()),
        expires_at: None,
        ip_allowlist: IpAllowlist::default(),
        webhook_url: None,
        overrides: LimitOverrides::default(),
        api_version: None,
        is_agent: false,
    }
}

impl TestKey {
    /// The same key, with requests to another process.
    #[must_use]
    pub fn in_process(&self, ctx: Ctx) -> Self {
        Self { ctx, ..self.clone() }
    }

    /// The confirmation token of a held trade.
    ///
    /// # Panics
    /// If the trade is not held, or if its window has ended.
    pub fn token(&self, trade: &Trade) -> String {
        let held = app::trades::confirmation_of(&self.ctx, &self.caller, trade);
        held.expect("the trade is held").token.expect("a key may confirm it")
    }

    /// Confirms a trade.
    pub async fn confirm(&self, trade: &Trade, token: &str) -> Result<Trade, AppError> {
        let confirmed = app::trades::confirm(&self.ctx, &self.caller, &trade.id.to_string(), token).await;
        confirmed.map(|(trade, _)| trade)
    }

    /// Pauses this key's trading.
    pub async fn pause(&self) {
        app::keys::pause(&self.ctx, &self.caller).await.unwrap();
    }
}
