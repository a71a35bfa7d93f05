//! The test application and its main operations.

use std::path::Path;
use std::sync::Arc;

use alloy::providers::Provider as _;
use alloy_primitives::{Address, Bytes, U256};
use app::test_clock::{MovableTime, TestClock};
use app::{AppError, Ctx};
use async_trait::async_trait;
use chain::{Chain, Receipt, Signer, calls};
use domain::Usdc;
use domain::ids::TradeId;
use domain::time::ManualClock;
use domain::trade::Status;
use embedded_chain::{EmbeddedNode, Genesis};
use store::trades::Trade;

use crate::{Branches, CHAIN_ID, Faults, Roles, RpcProxy, START, Workers};

/// A whole service without HTTP in which nothing runs by itself.
pub struct TestApp {
    pub ctx: Ctx,
    /// The clock of the service and of the embedded chain.
    pub clock: Arc<ManualClock>,
    pub roles: Roles,
    /// The workers of this process.
    pub workers: Workers,
    /// Faults between the service and the embedded chain.
    pub faults: Faults,
    pub(crate) branches: Option<Branches>,
    /// The proxies in front of its nodes. Empty unless it was set up with nodes.
    pub proxies: Vec<RpcProxy>,
}

impl TestApp {
    /// Returns the context of a process whose chain is in this file. The chain has no contracts.
    ///
    /// # Panics
    /// If the file cannot be created.
    pub fn ctx_on_chain_file(&self, path: &Path) -> Ctx {
        let genesis = Genesis {
            chain_id: CHAIN_ID,
            balances: Vec::new(),
            timestamp: START,
            gas_limit: 60_000_000,
            base_fee: 1_000_000_000,
        };
        let node = EmbeddedNode::open(path, genesis, self.clock.clone()).unwrap();
        let mut ctx = self.ctx.clone();
        ctx.chain = Chain::embedded(&node, self.ctx.chain.contracts().clone());
        ctx
    }

    /// Steps the workers until nothing is left to do.
    ///
    /// # Panics
    /// If a tick fails.
    pub async fn run_workers(&self) {
        self.workers.run(&self.ctx).await;
    }

    /// Advances the time of the service and of the chain.
    pub async fn advance_ms(&self, ms: i64) {
        self.clock.advance(ms);
        if self.branches.is_none() {
            let seconds = (u64::try_from(ms / 1_000).unwrap(),);
            let _: serde_json::Value =
                self.ctx.chain.provider().raw_request("evm_increaseTime".into(), seconds).await.unwrap();
        }
        self.mine(1).await;
    }

    /// The clock as clients may move it.
    pub fn test_clock(&self) -> Arc<TestClock> {
        let chain = self.ctx.chain.clone();
        Arc::new(TestClock::new(Arc::new(TestTime { clock: Arc::clone(&self.clock), chain })))
    }

    /// Mines empty blocks.
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

    /// Simulates a crash: new workers replace the current ones after their leases have expired.
    pub async fn restart(&mut self, owner: &str) {
        self.workers = Workers::of(&self.ctx, &self.roles.executors, owner);
        self.advance_ms(self.ctx.config.lease_ms).await;
    }

    /// Simulates a restart with `copy`, an earlier state of the database.
    pub async fn restore(&mut self, copy: store::Store, owner: &str) {
        let Ctx { chain, clock, ids, config, .. } = self.ctx.clone();
        self.ctx = Ctx::new(copy, chain, clock, ids.entropy(), config.as_ref().clone());
        self.workers = Workers::of(&self.ctx, &self.roles.executors, owner);
        // A single process runs now, so no lease of the copy can have an owner.
        let ended = self.ctx.store.write((), |tx, ()| Box::pin(store::leases::end_all(tx))).await;
        ended.unwrap();
    }

    /// Returns the workers of another process with the same database and chain.
    pub fn another_process(&self, owner: &str) -> Workers {
        Workers::of(&self.ctx, &self.roles.executors, owner)
    }

    /// Returns the context of another process with the same database, chain and clock.
    pub fn ctx_of_another_process(&self) -> Ctx {
        let Ctx { store, chain, clock, ids, config, .. } = self.ctx.clone();
        Ctx::new(store, chain, clock, ids.entropy(), config.as_ref().clone())
    }

    /// The two branches of the chain.
    ///
    /// # Panics
    /// If the application was not set up as forkable.
    pub fn branches(&self) -> &Branches {
        self.branches.as_ref().expect("the application is forkable")
    }

    /// Sends a transaction and waits for its receipt.
    ///
    /// # Panics
    /// If it fails.
    pub async fn send(&self, signer: &Signer, to: Address, data: Bytes) -> Receipt {
        self.ctx.chain.transact(signer, Some(to), data).await.unwrap()
    }

    /// Mints USDC to an address.
    pub async fn mint(&self, to: Address, usdc: Usdc) {
        let data = calls::mint(to, U256::from(usdc.atomic()));
        self.send(&self.roles.deployer, self.ctx.chain.contracts().usdc, data).await;
    }

    /// Returns a stored trade.
    pub async fn trade(&self, id: TradeId) -> Trade {
        let found = self.ctx.store.read(id, |tx, id| Box::pin(store::trades::find_any(tx, *id))).await;
        found.unwrap().expect("the trade is stored")
    }

    /// Returns a trade's status.
    pub async fn status(&self, id: TradeId) -> Status {
        self.trade(id).await.state.status()
    }

    /// Returns the statuses that a trade went through.
    pub async fn history(&self, id: TradeId) -> Vec<Status> {
        let moves = self.ctx.store.read(id, |tx, id| Box::pin(store::trades::history(tx, *id))).await;
        moves.unwrap().into_iter().map(|(status, _)| status).collect()
    }
}

/// The time of the service and of the embedded chain.
struct TestTime {
    clock: Arc<ManualClock>,
    chain: Chain,
}

#[async_trait]
impl MovableTime for TestTime {
    async fn advance(&self, ms: i64) -> Result<(), AppError> {
        self.clock.advance(ms);
        let mined: Result<serde_json::Value, _> =
            self.chain.provider().raw_request("evm_mine".into(), ()).await;
        mined.map(drop).map_err(AppError::internal)
    }
}
