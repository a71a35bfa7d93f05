//! Trades on a durable embedded chain in this process, without anything around it: plain trades,
//! which are the baseline for trades over HTTP, and delegated trades in the Gate's batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use alloy::providers::{DynProvider, Provider as _};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use chain::{
    Chain, DeploySettings, EventKind, Fees, Intent, IntentSide, KeyPolicy, MarketTerms, SendOutcome,
    SignedTx, Signer, SpendingLimits, Transaction, calls, deploy, execute_calldata, provision,
};
use domain::Clock;
use domain::time::SystemClock;
use embedded_chain::{EmbeddedNode, Genesis};
use store::testing::TestFolder;
use testkit::{Anvil, START};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::Times;
use crate::process::Process;
use crate::report::{Report, Row};
use crate::sample::{Begun, Sample, median};

const CHAIN_ID: u64 = 31_337;
/// The same number as the connections of the HTTP load.
const BUYERS: u8 = 16;
/// The same number as in the demonstration.
const ACCOUNTS: u32 = 12;
const KEY_INDEX: u32 = 1;
const BATCHES: [usize; 3] = [1, 10, FULL];
/// The most that the Gate accepts.
const FULL: usize = 100;
/// 0.05 USDC, the same amount as over HTTP.
const TRADE_ATOMIC: u64 = 50_000;
const FUNDS_ATOMIC: u64 = 1_000_000_000_000;
const LARGEST_CAP: u64 = (1 << 44) - 1;
const DAY_S: u64 = 86_400;
/// The gas limits that the service uses: per plain call, per batch, and per intent in a batch.
const CALL_GAS: u64 = 300_000;
const BATCH_GAS: u64 = 600_000;
const INTENT_GAS: u64 = 130_000;

/// The chain with its funded accounts.
pub struct ChainLimits {
    chain: Chain,
    buyers: Vec<Signer>,
    executor: Signer,
    accounts: Vec<Address>,
    market: u64,
    /// Number of the next intent. The accounts take turns, so it determines the account and its
    /// nonce.
    next_intent: AtomicU32,
    now_s: u64,
    /// The embedded chain's.
    _folder: Option<TestFolder>,
}

impl ChainLimits {
    /// Starts a durable embedded chain.
    pub async fn start() -> Self {
        let folder = TestFolder::create();
        let clock = Arc::new(SystemClock::default());
        let now = clock.now();
        let genesis = Genesis {
            chain_id: CHAIN_ID,
            balances: senders().iter().map(|signer| (signer.address(), U256::MAX >> 8)).collect(),
            timestamp: now,
            gas_limit: 60_000_000,
            base_fee: 1_000_000_000,
        };
        let node = EmbeddedNode::open(&folder.path().join("chain.db"), genesis, clock).expect("a new chain");
        Self { _folder: Some(folder), ..Self::on(node.provider(), now.s()).await }
    }

    /// Prepares a chain of anvil.
    pub async fn on_anvil(anvil: &Anvil) -> Self {
        for signer in senders() {
            let funds = (signer.address(), U256::MAX >> 8);
            let _: () = anvil.provider.raw_request("anvil_setBalance".into(), funds).await.expect("ether");
        }
        Self::on(anvil.provider.clone(), START.s()).await
    }

    /// Deploys the contracts, opens a market with two outcomes and funds all accounts.
    async fn on(provider: DynProvider, now_s: u64) -> Self {
        let [deployer, resolver, guardian, treasury, relayer, executor] = [1, 2, 3, 4, 5, 6].map(key);
        let settings = DeploySettings {
            usdc: None,
            owner: deployer.address(),
            resolver: resolver.address(),
            guardian: guardian.address(),
            treasury: treasury.address(),
            executors: vec![executor.address()],
            hourly_volume_cap_usdc_atomic: LARGEST_CAP,
            other_hourly_caps: Default::default(),
            role_delay_s: 0,
            listing_delay_s: 0,
            veto_window_s: 0,
            min_freeze_s: 0,
            reference_period_s: DeploySettings::DEFAULT_REFERENCE_PERIOD_S,
            result_deadline_s: DeploySettings::DEFAULT_RESULT_DEADLINE_S,
            salt: B256::ZERO,
        };
        let contracts = deploy::deploy(provider.clone(), CHAIN_ID, &deployer, settings).await;
        let chain = Chain::connect(provider, contracts.expect("the contracts stand")).await.unwrap();
        let world = Operator { chain: &chain, deployer: &deployer };
        world.fund(resolver.address()).await;
        world.approve(&resolver).await;
        let market = world.market(&resolver, now_s).await;
        let buyers = buyers();
        for buyer in &buyers {
            world.fund(buyer.address()).await;
            world.approve(buyer).await;
        }
        let mut accounts = Vec::new();
        for number in 0..ACCOUNTS {
            let policy = KeyPolicy {
                key_index: KEY_INDEX,
                limits: SpendingLimits {
                    per_trade_usdc_atomic: LARGEST_CAP,
                    daily_usdc_atomic: LARGEST_CAP,
                    sale_per_trade_usdc_atomic: LARGEST_CAP,
                    sale_daily_usdc_atomic: LARGEST_CAP,
                    expiry_s: later(now_s, 300 * DAY_S),
                },
            };
            let owner = key(50 + number as u8);
            let made = provision::provision(&chain, &relayer, &owner, B256::ZERO, &[policy], 0).await;
            let account = made.expect("an account is made");
            world.fund(account).await;
            accounts.push(account);
        }
        let next_intent = AtomicU32::new(0);
        Self { chain, buyers, executor, accounts, market, next_intent, now_s, _folder: None }
    }

    /// Executes `trades` in full batches that are signed before the time begins, one after the other.
    pub async fn presigned_trades(&self, trades: u64) -> Sample {
        let fees = self.chain.fees().await.unwrap();
        let first = self.chain.transaction_count(self.executor.address()).await.unwrap();
        let nonces = first..first + trades.div_ceil(FULL as u64);
        let batches: Vec<SignedTx> = nonces.map(|nonce| self.full_batch(nonce, fees)).collect();
        let executed = batches.len() * FULL;
        let begun = Begun::now(Process::own());
        for batch in batches {
            expect_all_executed(&send_signed(&self.chain, &batch).await);
        }
        begun.end(executed as u64)
    }

    /// Executes plain buys for `time`: each is signed, sent and awaited. 16 senders share the
    /// durable commits, like the requests of 16 connections.
    pub async fn plain_trades(&self, time: Duration) -> Sample {
        let fees = self.chain.fees().await.unwrap();
        let begun = Begun::now(Process::own());
        let end = Instant::now() + time;
        let mut tasks = JoinSet::new();
        for buyer in self.buyers.clone() {
            let (chain, market) = (self.chain.clone(), self.market);
            tasks.spawn(async move {
                let mut nonce = chain.transaction_count(buyer.address()).await.unwrap();
                let mut trades = 0;
                while Instant::now() < end {
                    let data = buy(market, nonce % 2);
                    send(&chain, &buyer, chain.contracts().hub, data, nonce, CALL_GAS, fees).await;
                    nonce += 1;
                    trades += 1;
                }
                trades
            });
        }
        begun.end(tasks.join_all().await.into_iter().sum())
    }

    /// Executes batches of `size` intents for `time`, one after the other.
    async fn delegated_trades(&self, size: usize, time: Duration) -> Sample {
        let fees = self.chain.fees().await.unwrap();
        let mut nonce = self.chain.transaction_count(self.executor.address()).await.unwrap();
        let begun = Begun::now(Process::own());
        let end = Instant::now() + time;
        let mut trades = 0;
        while Instant::now() < end {
            let intents: Vec<Intent> = (0..size).map(|_| self.intent()).collect();
            let (data, gas) = (execute_calldata(&intents), BATCH_GAS + INTENT_GAS * size as u64);
            let events =
                send(&self.chain, &self.executor, self.chain.contracts().gate, data, nonce, gas, fees).await;
            expect_all_executed(&events);
            nonce += 1;
            trades += size as u64;
        }
        begun.end(trades)
    }

    /// Returns the gas of a trade in a full batch.
    pub async fn gas_of_a_trade(&self) -> f64 {
        let fees = self.chain.fees().await.unwrap();
        let nonce = self.chain.transaction_count(self.executor.address()).await.unwrap();
        let batch = self.full_batch(nonce, fees);
        send_signed(&self.chain, &batch).await;
        let receipt = self.chain.receipt(batch.hash).await.unwrap().expect("a receipt");
        receipt.gas_used as f64 / FULL as f64
    }

    fn full_batch(&self, nonce: u64, fees: Fees) -> SignedTx {
        let intents: Vec<Intent> = (0..FULL).map(|_| self.intent()).collect();
        let (data, gas) = (execute_calldata(&intents), BATCH_GAS + INTENT_GAS * FULL as u64);
        sign(&self.chain, &self.executor, self.chain.contracts().gate, data, nonce, gas, fees)
    }

    fn intent(&self) -> Intent {
        let number = self.next_intent.fetch_add(1, Ordering::Relaxed);
        let nonce = number / ACCOUNTS + 1;
        Intent {
            account: self.accounts[(number % ACCOUNTS) as usize],
            key_index: KEY_INDEX,
            nonce,
            deadline_s: later(self.now_s, DAY_S),
            market_id: self.market,
            outcome: (nonce % 2) as u8,
            side: IntentSide::BuyForUsdc,
            usdc_atomic: TRADE_ATOMIC,
            tokens_wad: 0,
            trade_id: Uuid::from_u128(number.into()),
        }
    }
}

/// Measures the Gate's batches against plain trades.
pub async fn batches(limits: &ChainLimits, times: Times, report: &mut Report) {
    let mut plain = Vec::new();
    let mut rounds = BATCHES.map(|_| Vec::new());
    // The first round is a warm-up.
    for round in 0..=times.rounds {
        let in_process = limits.plain_trades(times.batches).await;
        if round > 0 {
            plain.push(in_process);
        }
        for (rounds, size) in rounds.iter_mut().zip(BATCHES) {
            let sample = limits.delegated_trades(size, times.batches).await;
            if round > 0 {
                rounds.push(sample);
            }
        }
    }
    let figure = |samples: &[Sample]| {
        let cpu_us = median(samples.iter().map(Sample::cpu_each));
        format!("{cpu_us:.1} us CPU; {:.0}/s", median(samples.iter().map(Sample::rate)))
    };
    let limit_us = median(plain.iter().map(Sample::cpu_each));
    report.row(Row::new("plain trade in process, 16 senders".to_owned(), figure(&plain)));
    for (samples, size) in rounds.iter().zip(BATCHES) {
        let row = Row::new(format!("delegated trade in process, batches of {size}"), figure(samples));
        let ratios = samples.iter().zip(&plain).map(|(ours, plain)| ours.cpu_each() / plain.cpu_each());
        report.row(row.against(format!("plain trade {limit_us:.1} us CPU"), ratios));
    }
}

/// Sends the setup transactions.
struct Operator<'a> {
    chain: &'a Chain,
    deployer: &'a Signer,
}

impl Operator<'_> {
    async fn fund(&self, holder: Address) {
        let mint = calls::mint(holder, U256::from(FUNDS_ATOMIC));
        self.chain.transact(self.deployer, Some(self.chain.contracts().usdc), mint).await.unwrap();
    }

    async fn approve(&self, holder: &Signer) {
        let contracts = self.chain.contracts();
        let approve = calls::approve(contracts.hub, U256::MAX);
        self.chain.transact(holder, Some(contracts.usdc), approve).await.unwrap();
    }

    async fn market(&self, resolver: &Signer, now_s: u64) -> u64 {
        let reference = B256::with_last_byte(1);
        let terms = MarketTerms {
            reference,
            outcomes: 2,
            fee_bps: 100,
            close_time_s: later(now_s, 30 * DAY_S),
            liquidity_usdc_atomic: 5_000_000_000,
            opening_odds_wad: Vec::new(),
        };
        let create = calls::create_market(&terms);
        self.chain.transact(resolver, Some(self.chain.contracts().hub), create).await.unwrap();
        self.chain.market_of(reference).await.unwrap().expect("the market is there")
    }
}

fn key(number: u8) -> Signer {
    Signer::random([number; 32]).expect("a number's key is below the group's order")
}

fn later(now_s: u64, by_s: u64) -> u32 {
    u32::try_from(now_s + by_s).expect("a time before 2106")
}

/// Encodes a direct buy from the hub, without a price bound.
fn buy(market: u64, outcome: u64) -> Bytes {
    let words = [U256::from(market), U256::from(outcome), U256::from(TRADE_ATOMIC), U256::ZERO];
    let mut data = keccak256("buy(uint64,uint8,uint256,uint256)")[..4].to_vec();
    data.extend(words.iter().flat_map(|word| word.to_be_bytes::<32>()));
    data.into()
}

/// Signs and sends a transaction, and reads its events.
async fn send(
    chain: &Chain,
    signer: &Signer,
    to: Address,
    data: Bytes,
    nonce: u64,
    gas_limit: u64,
    fees: Fees,
) -> Vec<EventKind> {
    send_signed(chain, &sign(chain, signer, to, data, nonce, gas_limit, fees)).await
}

fn sign(
    chain: &Chain,
    signer: &Signer,
    to: Address,
    data: Bytes,
    nonce: u64,
    gas_limit: u64,
    fees: Fees,
) -> SignedTx {
    let transaction = Transaction { to: Some(to), data, value: U256::ZERO, nonce, gas_limit, fees };
    chain.sign(signer, &transaction).unwrap()
}

/// Sends a transaction and reads its receipt. The embedded chain has it immediately; anvil mines after its answer.
async fn send_signed(chain: &Chain, signed: &SignedTx) -> Vec<EventKind> {
    assert_eq!(chain.send_raw(&signed.raw).await.unwrap(), SendOutcome::Accepted);
    let receipt = loop {
        if let Some(receipt) = chain.receipt(signed.hash).await.unwrap() {
            break receipt;
        }
        tokio::task::yield_now().await;
    };
    assert!(receipt.success, "the transaction reverted");
    receipt.events.into_iter().map(|event| event.kind).collect()
}

fn expect_all_executed(events: &[EventKind]) {
    let failed = events.iter().find(|event| matches!(event, EventKind::IntentFailed { .. }));
    assert!(failed.is_none(), "{failed:?}");
}

fn buyers() -> Vec<Signer> {
    (0..BUYERS).map(|number| key(100 + number)).collect()
}

/// Returns all keys that send transactions.
fn senders() -> Vec<Signer> {
    [1, 2, 5, 6].map(key).into_iter().chain(buyers()).collect()
}
