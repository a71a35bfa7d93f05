//! Users and their smart accounts.

use std::future::IntoFuture;

use alloy_primitives::{Address, B256, Bytes, U256};
use app::accounts;
use chain::{Call, Receipt, Signer, provision};
use domain::Usdc;
use domain::ids::UserId;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::TestApp;

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
            let address = account.address;
            // Minting 0 would only cost a transaction.
            if self.funds > Usdc::ZERO {
                self.app.mint(address, self.funds).await;
            }
            TestUser { id: user.id, account: address, owner, salt: account.salt }
        }
        .boxed()
    }
}

impl TestApp {
    /// Builds a user. The name and number of each user are unique.
    pub fn user<'a>(&'a self, name: &'a str) -> UserBuilder<'a> {
        UserBuilder::new(self, name)
    }

    /// Returns the user's USDC on chain.
    pub async fn balance(&self, user: &TestUser) -> Usdc {
        Usdc::from_atomic(self.ctx.chain.usdc_balance(user.account).await.unwrap().to())
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
