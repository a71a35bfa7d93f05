//! The fixture of the tests: a fresh chain with the contracts, and helpers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use alloy::providers::{DynProvider, Provider};
use alloy::sol_types::SolCall;
use alloy_primitives::{Address, B256, Bytes, U256};
use chain::{
    AccountOwner, Call, Chain, ChainError, DeploySettings, EventKind, Intent, IntentSide, KeyPolicy,
    MarketTerms, Receipt, Revert, Signer, SpendingLimits, UnsignedBatch, calls, deploy, execute_calldata,
    http_provider, provision,
};
use domain::Timestamp;
use domain::time::ManualClock;
use embedded_chain::{EmbeddedNode, Genesis};
use uuid::Uuid;

/// The time of the first block of every chain, in Unix seconds.
pub const START_S: u64 = 1_800_000_000;
pub const CLOSE_S: u32 = START_S as u32 + 30 * 86_400;
pub const CHAIN_ID: u64 = 31_337;
/// One USDC, atomic.
pub const USDC: u64 = 1_000_000;
/// One token, WAD.
pub const TOKEN: u128 = 1_000_000_000_000_000_000;
/// The key index of the accounts that `World` creates.
pub const KEY: u32 = 7;

/// Returns the n-th key. Every chain funds these keys with native currency.
pub fn key(n: u8) -> Signer {
    Signer::random([n; 32]).unwrap()
}

/// A running node without contracts.
pub struct Node {
    pub provider: DynProvider,
    /// Set if the node is the embedded chain.
    pub near: Option<Arc<EmbeddedNode>>,
    time: Time,
}

enum Time {
    Clock(Arc<ManualClock>),
    Anvil(Child),
}

impl Node {
    pub fn embedded() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_s(START_S)));
        let genesis = Genesis {
            chain_id: CHAIN_ID,
            balances: (1..=9).map(|n| (key(n).address(), native())).collect(),
            timestamp: Timestamp::from_s(START_S),
            gas_limit: 60_000_000,
            base_fee: 7,
        };
        let node = EmbeddedNode::in_memory(genesis, clock.clone()).unwrap();
        Self { provider: node.provider(), near: Some(node), time: Time::Clock(clock) }
    }

    pub async fn anvil() -> Option<Self> {
        let Some(path) = std::env::var_os("FORETELL_ANVIL") else {
            eprintln!("FORETELL_ANVIL is not set: not run on anvil");
            return None;
        };
        let mut anvil = Command::new(path)
            .args(["--port", "0", "--hardfork", "osaka", "--gas-limit", "60000000"])
            .args(["--chain-id", &CHAIN_ID.to_string(), "--timestamp", &START_S.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("FORETELL_ANVIL names anvil's binary");
        let mut lines = BufReader::new(anvil.stdout.take().unwrap()).lines();
        let listening = lines.find_map(|line| line.unwrap().strip_prefix("Listening on ").map(str::to_owned));
        // Anvil blocks if its output is not read.
        std::thread::spawn(move || lines.for_each(drop));

        let provider = http_provider(&format!("http://{}", listening.unwrap())).unwrap();
        for n in 1..=9 {
            let balance = (key(n).address(), native());
            let _: Option<bool> = provider.raw_request("anvil_setBalance".into(), balance).await.unwrap();
        }
        Some(Self { provider, near: None, time: Time::Anvil(anvil) })
    }

    /// Advances the chain's time and mines a block with the new time.
    pub async fn advance(&self, seconds: u32) {
        match &self.time {
            Time::Clock(clock) => clock.advance(i64::from(seconds) * 1_000),
            Time::Anvil(_) => {
                let by = (u64::from(seconds),);
                let _: serde_json::Value =
                    self.provider.raw_request("evm_increaseTime".into(), by).await.unwrap();
            }
        }
        let _: serde_json::Value = self.provider.raw_request("evm_mine".into(), ()).await.unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Time::Anvil(anvil) = &mut self.time {
            let _ = anvil.kill();
            let _ = anvil.wait();
        }
    }
}

fn native() -> U256 {
    U256::from(1_000 * TOKEN)
}

/// A chain with the contracts, and a key for each role.
pub struct World {
    pub chain: Chain,
    pub node: Node,
    pub deployer: Signer,
    pub resolver: Signer,
    pub guardian: Signer,
    pub executor: Signer,
    pub relayer: Signer,
    pub treasury: Address,
}

impl World {
    /// Creates a world without listing delay and veto window, and with an hourly volume that no
    /// test reaches.
    pub async fn new(node: Node) -> Self {
        Self::with(node, |_| ()).await
    }

    pub async fn with(node: Node, change: impl FnOnce(&mut DeploySettings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let deployer = key(1);
        let contracts = deploy::deploy(node.provider.clone(), CHAIN_ID, &deployer, settings).await.unwrap();
        let chain = match &node.near {
            Some(near) => Chain::embedded(near, contracts),
            None => Chain::connect(node.provider.clone(), contracts).await.unwrap(),
        };
        let chain = chain.with_poll_interval(Duration::from_millis(10));
        let (resolver, guardian, executor, relayer) = (key(2), key(3), key(4), key(5));
        let treasury = key(6).address();
        let world = Self { chain, node, deployer, resolver, guardian, executor, relayer, treasury };
        world.mint(world.resolver.address(), 1_000_000_000 * USDC).await;
        let approval = calls::approve(world.chain.contracts().hub, U256::MAX);
        world.send(&world.resolver, world.chain.contracts().usdc, approval).await.unwrap();
        world
    }

    pub async fn send(&self, signer: &Signer, to: Address, data: Bytes) -> Result<Receipt, ChainError> {
        self.chain.transact(signer, Some(to), data).await
    }

    /// Waits for the receipt of an accepted transaction. A node may mine it a moment after
    /// accepting it.
    pub async fn receipt(&self, hash: B256) -> Receipt {
        let mut looks = tokio::time::interval(Duration::from_millis(10));
        for _ in 0..1_000 {
            looks.tick().await;
            if let Some(receipt) = self.chain.receipt(hash).await.unwrap() {
                return receipt;
            }
        }
        panic!("{hash} is not mined");
    }

    /// Sends a transaction to the hub and returns its events or its revert reason.
    pub async fn hub(&self, signer: &Signer, data: Bytes) -> Result<Vec<EventKind>, Revert> {
        kinds(self.send(signer, self.chain.contracts().hub, data).await)
    }

    /// Sends a transaction to the Gate and returns the events of both contracts or the revert
    /// reason.
    pub async fn gate(&self, signer: &Signer, data: Bytes) -> Result<Vec<EventKind>, Revert> {
        kinds(self.send(signer, self.chain.contracts().gate, data).await)
    }

    pub async fn execute(&self, intents: &[Intent]) -> Vec<EventKind> {
        self.gate(&self.executor, execute_calldata(intents)).await.unwrap()
    }

    pub async fn mint(&self, to: Address, usdc_atomic: u64) {
        let data = calls::mint(to, U256::from(usdc_atomic));
        self.send(&self.deployer, self.chain.contracts().usdc, data).await.unwrap();
    }

    /// Creates an account with USDC and, for `KEY`, a policy of 1,000 USDC per trade and 5,000 USDC
    /// per day. `n` selects its owner.
    pub async fn account(&self, n: u8, usdc_atomic: u64) -> Address {
        let owner = key(n);
        let policies = [policy(KEY, 1_000 * USDC, 5_000 * USDC)];
        let account =
            provision::provision(&self.chain, &self.relayer, &owner, B256::ZERO, &policies, 0).await.unwrap();
        if usdc_atomic > 0 {
            self.mint(account, usdc_atomic).await;
        }
        account
    }

    /// Prepares a batch for the owner's signature.
    pub async fn prepare(&self, owner: AccountOwner, calls: Vec<Call>) -> UnsignedBatch {
        let deadline_s = provision::signature_deadline_s(&self.chain, 0).await.unwrap();
        provision::prepare(&self.chain, owner, B256::ZERO, calls, deadline_s).await.unwrap()
    }

    /// Creates an open market with equal odds, a liquidity of 1,000 USDC and a fee of 1%.
    pub async fn market(&self, outcomes: u8) -> u64 {
        let reference = B256::with_last_byte(outcomes);
        self.hub(&self.resolver, calls::create_market(&terms(reference, outcomes))).await.unwrap();
        self.chain.market_of(reference).await.unwrap().unwrap()
    }

    pub async fn advance(&self, seconds: u32) {
        self.node.advance(seconds).await;
    }

    pub async fn usdc_of(&self, holder: Address) -> u64 {
        self.chain.usdc_balance(holder).await.unwrap().to()
    }

    pub async fn tokens_of(&self, account: Address, market_id: u64, outcome: u8) -> u128 {
        self.chain.position(account, market_id, outcome).await.unwrap().to()
    }
}

pub fn settings() -> DeploySettings {
    DeploySettings {
        usdc: None,
        owner: key(7).address(),
        resolver: key(2).address(),
        guardian: key(3).address(),
        treasury: key(6).address(),
        executors: vec![key(4).address()],
        hourly_volume_cap_usdc_atomic: 100_000_000 * USDC,
        other_hourly_caps: Default::default(),
        role_delay_s: 0,
        listing_delay_s: 0,
        veto_window_s: 0,
        min_freeze_s: 0,
        reference_period_s: DeploySettings::DEFAULT_REFERENCE_PERIOD_S,
        result_deadline_s: DeploySettings::DEFAULT_RESULT_DEADLINE_S,
        salt: B256::ZERO,
    }
}

pub fn terms(reference: B256, outcomes: u8) -> MarketTerms {
    MarketTerms {
        reference,
        outcomes,
        fee_bps: 100,
        close_time_s: CLOSE_S,
        liquidity_usdc_atomic: 1_000 * USDC,
        opening_odds_wad: Vec::new(),
    }
}

pub fn policy(key_index: u32, per_trade_usdc_atomic: u64, daily_usdc_atomic: u64) -> KeyPolicy {
    KeyPolicy { key_index, limits: limits(per_trade_usdc_atomic, daily_usdc_atomic, CLOSE_S + 86_400) }
}

/// Returns limits that allow selling ten tokens for each USDC that may be spent.
pub fn limits(per_trade_usdc_atomic: u64, daily_usdc_atomic: u64, expiry_s: u32) -> SpendingLimits {
    SpendingLimits {
        per_trade_usdc_atomic,
        daily_usdc_atomic,
        sale_per_trade_usdc_atomic: per_trade_usdc_atomic.saturating_mul(10),
        sale_daily_usdc_atomic: daily_usdc_atomic.saturating_mul(10),
        expiry_s,
    }
}

/// Returns a buy of outcome 0 for 25 USDC without a bound, for the test to modify. The trade's id
/// is the nonce.
pub fn intent(account: Address, market_id: u64, nonce: u32) -> Intent {
    Intent {
        account,
        key_index: KEY,
        nonce,
        deadline_s: CLOSE_S + 86_400,
        market_id,
        outcome: 0,
        side: IntentSide::BuyForUsdc,
        usdc_atomic: 25 * USDC,
        tokens_wad: 0,
        trade_id: Uuid::from_u128(nonce.into()),
    }
}

/// Returns the reason of the only event, which must be a failed intent.
pub fn failure(events: &[EventKind]) -> Revert {
    match events {
        [EventKind::IntentFailed { reason, .. }] => reason.clone(),
        other => panic!("not one failure: {other:?}"),
    }
}

fn kinds(receipt: Result<Receipt, ChainError>) -> Result<Vec<EventKind>, Revert> {
    match receipt {
        Ok(receipt) => Ok(receipt.events.into_iter().map(|event| event.kind).collect()),
        Err(ChainError::Reverted(revert)) => Err(revert),
        Err(other) => panic!("{other}"),
    }
}

mod hub {
    // Functions that any address can call directly. The client does not support them, because the
    // service never calls them.
    alloy::sol! {
        function buy(uint64 marketId, uint8 outcome, uint256 usdc, uint256 minTokens) external;
    }
}

/// Calldata of a buy without a bound by the sender, who must have approved the hub for USDC.
pub fn hub_buy(market_id: u64, outcome: u8, usdc_atomic: u64) -> Bytes {
    let usdc = U256::from(usdc_atomic);
    hub::buyCall { marketId: market_id, outcome, usdc, minTokens: U256::ZERO }.abi_encode().into()
}
