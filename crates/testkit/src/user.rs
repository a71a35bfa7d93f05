//! Users, their smart accounts, and their API keys.

use std::future::IntoFuture;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use app::caller::Caller;
use app::keys::{IssueKey, issue};
use app::{AppError, accounts};
use chain::{Call, Receipt, Signer, calls, provision};
use domain::Usdc;
use domain::ids::UserId;
use domain::key::{IpAllowlist, LimitOverrides, Scopes, Tier};
use domain::trade::Draft;
use futures::FutureExt;
use futures::future::BoxFuture;
use store::trades::Trade;

use crate::{Request, TestApp, TestMarket};

/// A user, with the key of the account's owner.
#[derive(Debug, Clone)]
pub struct TestUser {
    pub id: UserId,
    pub account: Address,
    pub owner: Signer,
    /// The salt of the account's address.
    pub salt: B256,
}

/// A user under construction. Awaiting it creates the user.
pub struct UserBuilder<'a> {
    app: &'a TestApp,
    name: &'a str,
    funds: Usdc,
}

impl<'a> UserBuilder<'a> {
    pub(crate) const fn new(app: &'a TestApp, name: &'a str) -> Self {
        Self { app, name, funds: Usdc::ZERO }
    }

    /// Sets the initial USDC, as a decimal number.
    #[must_use]
    pub fn funded(mut self, usdc: &str) -> Self {
        self.funds = usdc.parse().expect("an amount of USDC");
        self
    }
}

impl<'a> IntoFuture for UserBuilder<'a> {
    type Output = TestUser;
    type IntoFuture = BoxFuture<'a, TestUser>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let ctx = &self.app.ctx;
            let owner = Signer::random(ctx.random()).unwrap();
            let (user, account) = accounts::create_user(ctx, self.name, &owner.owner()).await.unwrap();
            let address = accounts::address_of(&account).unwrap();
            // Minting 0 would only cost a transaction.
            if self.funds > Usdc::ZERO {
                self.app.mint(address, self.funds).await;
            }
            TestUser { id: user.id, account: address, owner, salt: account.salt.parse().unwrap() }
        }
        .boxed()
    }
}

/// An API key, with the caller that its requests are authenticated as.
#[derive(Clone)]
pub struct TestKey {
    pub caller: Caller,
    /// The key in plain text.
    pub plaintext: String,
    pub(crate) ctx: app::Ctx,
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
            caller: Caller { key: Arc::new(issued.key) },
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
        accounts::enable_keys(&self.ctx, &self.roles.relayer, &user.owner, user.id, &keys).await.unwrap();
    }

    /// Executes a call of the account, signed by its owner and sent by the relayer.
    pub async fn as_owner(&self, user: &TestUser, to: Address, data: Bytes) -> Receipt {
        let calls = vec![Call { target: to, value: U256::ZERO, data }];
        let chain = &self.ctx.chain;
        let deadline_s = provision::signature_deadline_s(chain, self.ctx.now().s()).await.unwrap();
        let batch =
            provision::prepare(chain, user.owner.owner(), user.salt, calls, deadline_s).await.unwrap();
        let signature = user.owner.sign_digest(batch.digest).unwrap();
        provision::relay(chain, &self.roles.relayer, &batch, signature).await.unwrap()
    }
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
    }
}

impl TestKey {
    /// The same key, with requests to another process.
    #[must_use]
    pub fn in_process(&self, ctx: app::Ctx) -> Self {
        Self { ctx, ..self.clone() }
    }

    /// The confirmation token of a held trade.
    ///
    /// # Panics
    /// If the trade is not held, or if its window has ended.
    pub fn token(&self, trade: &Trade) -> String {
        app::trades::confirmation_of(&self.ctx, trade).expect("the trade is held").token
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

    /// Builds a buy for an amount of USDC.
    pub fn buy(&self, market: &TestMarket, outcome: u8, usdc: &str) -> Request<'_> {
        self.request(draft("buy", market, outcome, usdc))
    }

    /// Builds a sale for an amount of USDC.
    pub fn sell(&self, market: &TestMarket, outcome: u8, usdc: &str) -> Request<'_> {
        self.request(draft("sell", market, outcome, usdc))
    }

    /// Builds a sale of all tokens.
    pub fn sell_all(&self, market: &TestMarket, outcome: u8) -> Request<'_> {
        let draft =
            Draft { amount: None, amount_type: Some("all".to_owned()), ..draft("sell", market, outcome, "") };
        self.request(draft)
    }

    /// Builds any request.
    pub const fn request(&self, draft: Draft) -> Request<'_> {
        Request::new(self, draft)
    }
}

fn draft(side: &str, market: &TestMarket, outcome: u8, amount: &str) -> Draft {
    Draft {
        market_id: Some(market.id.to_string()),
        outcome_index: Some(outcome.into()),
        amount: Some(amount.to_owned()),
        side: Some(side.to_owned()),
        ..Draft::default()
    }
}
