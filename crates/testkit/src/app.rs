//! The test application and its words.

use std::sync::Arc;

use alloy::providers::Provider as _;
use alloy_primitives::{Address, Bytes, U256};
use app::Ctx;
use chain::{Receipt, Signer, calls};
use domain::Usdc;
use domain::ids::TradeId;
use domain::time::ManualClock;
use domain::trade::Status;
use store::StoreError;
use store::trades::Trade;

use crate::setup::Roles;
use crate::{Branches, Faults, RpcProxy, Setup, TestUser, UserBuilder, Workers};

/// A service without HTTP in which nothing runs by itself.
pub struct TestApp {
    /// What the use cases get.
    pub ctx: Ctx,
    /// The service's clock, and the embedded chain's.
    pub clock: Arc<ManualClock>,
    /// The operator's keys.
    pub roles: Roles,
    /// This process's workers.
    pub workers: Workers,
    /// What goes wrong on the way to the embedded chain.
    pub faults: Faults,
    pub(crate) branches: Option<Branches>,
    /// The proxies in front of its nodes, if it was set up with nodes.
    pub proxies: Vec<RpcProxy>,
}

impl TestApp {
    /// On a new SQLite database, over the embedded chain, with one lane.
    pub async fn new() -> Self {
        Setup::default().start().await
    }

    /// Another one: say how it differs, then `start` it.
    pub fn with() -> Setup {
        Setup::default()
    }

    /// A user with a name and a number that no other has.
    pub fn user<'a>(&'a self, name: &'a str) -> UserBuilder<'a> {
        UserBuilder::new(self, name)
    }

    /// Steps executors and sync until nothing is left to do.
    ///
    /// # Panics
    /// Where a tick fails.
    pub async fn run_workers(&self) {
        self.workers.run(&self.ctx).await;
    }

    /// Moves the service's time on, and the chain's with it.
    ///
    /// # Panics
    /// Where the chain mines no block.
    pub async fn advance_ms(&self, ms: i64) {
        self.clock.advance(ms);
        if self.branches.is_none() {
            let seconds = (u64::try_from(ms / 1_000).unwrap(),);
            let _: serde_json::Value =
                self.ctx.chain.provider().raw_request("evm_increaseTime".into(), seconds).await.unwrap();
        }
        self.mine(1).await;
    }

    /// Mines empty blocks.
    ///
    /// # Panics
    /// Where the chain mines no block.
    pub async fn mine(&self, blocks: u32) {
        for _ in 0..blocks {
            if !self.proxies.is_empty() {
                self.branches().shown().call("evm_mine", None).await.unwrap();
                continue;
            }
            let _: serde_json::Value =
                self.ctx.chain.provider().raw_request("evm_mine".into(), ()).await.unwrap();
        }
    }

    /// The process dies and another takes its place once its leases are over.
    pub async fn restart(&mut self, owner: &str) {
        self.workers = Workers::new(&self.roles.executors, owner);
        self.advance_ms(self.ctx.config.lease_ms).await;
    }

    /// The process ends and another takes its place, over `copy` of an earlier state of the database.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn restore(&mut self, copy: store::Store, owner: &str) {
        let Ctx { chain, clock, entropy, config, .. } = self.ctx.clone();
        self.ctx = Ctx::new(copy, chain, clock, entropy, config.as_ref().clone());
        self.workers = Workers::new(&self.roles.executors, owner);
        let ended: Result<(), StoreError> =
            self.ctx.store.write((), |tx, ()| Box::pin(store::leases::end_all(tx))).await;
        ended.unwrap();
    }

    /// The workers of another process over the same database and chain.
    pub fn another_process(&self, owner: &str) -> Workers {
        Workers::new(&self.roles.executors, owner)
    }

    /// The context of another process over the same database and chain, under the same clock.
    pub fn ctx_of_another_process(&self) -> Ctx {
        let Ctx { store, chain, clock, entropy, config, .. } = self.ctx.clone();
        Ctx::new(store, chain, clock, entropy, config.as_ref().clone())
    }

    /// The two branches of an application that was set up as forkable.
    ///
    /// # Panics
    /// Where it was not.
    pub fn branches(&self) -> &Branches {
        self.branches.as_ref().expect("the application is forkable")
    }

    /// A transaction of an operator or anybody else with a key.
    ///
    /// # Panics
    /// Where it fails.
    pub async fn send(&self, signer: &Signer, to: Address, data: Bytes) -> Receipt {
        self.ctx.chain.transact(signer, Some(to), data).await.unwrap()
    }

    /// Gives an address USDC.
    ///
    /// # Panics
    /// Where the token's contract refuses.
    pub async fn mint(&self, to: Address, usdc: Usdc) {
        let data = calls::mint(to, U256::from(usdc.atomic()));
        self.send(&self.roles.deployer, self.ctx.chain.contracts().usdc, data).await;
    }

    /// The trade as it is stored.
    ///
    /// # Panics
    /// Where there is none.
    pub async fn trade(&self, id: TradeId) -> Trade {
        let found: Result<Option<Trade>, StoreError> =
            self.ctx.store.read(id, |tx, id| Box::pin(store::trades::find_any(tx, *id))).await;
        found.unwrap().expect("the trade is stored")
    }

    /// Where the trade stands.
    ///
    /// # Panics
    /// Where there is none.
    pub async fn status(&self, id: TradeId) -> Status {
        self.trade(id).await.state.status()
    }

    /// The statuses that the trade went through.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn history(&self, id: TradeId) -> Vec<Status> {
        let moves: Result<Vec<_>, StoreError> =
            self.ctx.store.read(id, |tx, id| Box::pin(store::trades::history(tx, *id))).await;
        moves.unwrap().into_iter().map(|(status, _)| status).collect()
    }

    /// The user's USDC on chain.
    ///
    /// # Panics
    /// Where the chain does not answer.
    pub async fn balance(&self, user: &TestUser) -> Usdc {
        Usdc::from_atomic(self.ctx.chain.usdc_balance(user.account).await.unwrap().to())
    }
}
