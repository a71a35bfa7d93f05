//! What every use case gets as its first argument.

use std::sync::Arc;

use chain::Chain;
use domain::ids::MarketId;
use domain::key::Environment;
use domain::{Clock, Timestamp, Usdc};
use store::Store;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::entropy::{Entropy, Ids};
use crate::feed::Hub;
use crate::finality::{Finality, default_confirmations};
use crate::fresh::{AsOf, Fresh};
use crate::health::Degradations;
use crate::keys::audit::AuditBuffer;
use crate::keys::{Allowlists, KeyCache};
use crate::kill_switches::Switches;
use crate::leaderboard::Leaderboards;
use crate::limits::Limits;
use crate::markets;
use crate::redemptions::Redemptions;
use crate::sealed::SealingKeys;
use crate::trades::Turns;
use crate::usage::Recorder;
use crate::user_units::UserUnits;
use crate::webhooks::{self, Pulse};
use crate::worker::WorkerRegistry;

/// How many bytes of markets' rows are kept for a moment.
const KEPT_MARKETS_BYTES: usize = 16 << 20;

/// The least USDC of a trade or claim if nothing else is configured: a cent.
pub const DEFAULT_MINIMUM: Usdc = Usdc::from_atomic(10_000);
/// The slippage that a trade may have if neither its request nor the operator says otherwise.
pub const DEFAULT_SLIPPAGE_BPS: u16 = 200;

/// The service's parts and settings.
#[derive(Clone)]
pub struct Ctx {
    /// The database.
    pub store: Store,
    /// The chain.
    pub chain: Chain,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// Random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// Settings.
    pub config: Arc<Config>,
    /// Signals to the workers.
    pub wake: Arc<Wake>,
    /// What this process has counted of its keys' requests.
    pub usage: Arc<Recorder>,
    /// Markets that were read a moment ago.
    pub markets: Arc<Fresh<MarketId, Arc<markets::Rows>>>,
    /// Whose turn it is with each idempotency key.
    pub turns: Arc<Turns>,
    /// The running writes of each user.
    pub user_units: Arc<UserUnits>,
    /// What the operator has switched off.
    pub switches: Arc<Switches>,
    /// Key rows that were read a moment ago.
    pub key_cache: Arc<KeyCache>,
    /// The allowlists of keys, read while addresses are locked out.
    pub allowlists: Arc<Allowlists>,
    /// Failed authentications that are not written yet.
    pub key_audit: Arc<AuditBuffer>,
    /// Who listens to what happens.
    pub feed: Arc<Hub>,
    /// The leaderboards of a moment ago.
    pub leaderboards: Arc<Leaderboards>,
    /// The limiters: in this process's memory, unless another place is put here.
    pub limits: Arc<Limits>,
    /// What this process has found to be wrong with the service.
    pub degradations: Arc<Degradations>,
    /// How this process's workers fare.
    pub workers: Arc<WorkerRegistry>,
    /// When webhooks were last looked after here.
    pub dispatching: Arc<Pulse>,
    ids: Arc<Ids>,
}

/// Settings of the use cases.
#[derive(Clone)]
pub struct Config {
    /// Which keys belong here.
    pub environment: Environment,
    /// The pepper of key digests.
    pub key_pepper: [u8; 32],
    /// The keys under which webhook secrets are stored.
    pub sealing_keys: SealingKeys,
    /// How many executors there are; an account's trades all go through one of them.
    pub lanes: u16,
    /// Blocks, the trade's own included, that make a trade final; by chain if absent.
    pub confirmations: Option<u64>,
    /// What else makes it final.
    pub finality: Finality,
    /// How long a trade of high value is held for its confirmation.
    pub confirmation_window_ms: i64,
    /// How long an intent is good for where the caller sets no deadline.
    pub intent_lifetime_ms: i64,
    /// How long a worker's lease lasts without being renewed.
    pub lease_ms: i64,
    /// The most batches of one lane that are on their way at once.
    pub max_batches_in_flight: u32,
    /// After how long an unmined batch is sent again.
    pub resend_after_ms: i64,
    /// After how long an unmined batch is signed again at a higher fee.
    pub replace_after_ms: i64,
    /// How long an idempotency key is kept.
    pub idempotency_ms: i64,
    /// Who claims what settled positions are paid.
    pub redemptions: Redemptions,
    /// The least USDC that a trade moves.
    pub min_trade: Usdc,
    /// The least USDC that a claim pays.
    pub min_claim: Usdc,
    /// The slippage of trades whose request sets no bound on the price, in hundredths of a percent.
    pub default_slippage_bps: u16,
    /// The most wei that are paid for a unit of gas; by chain if absent.
    pub max_fee_per_gas: Option<u128>,
    /// How events are delivered.
    pub webhooks: webhooks::Settings,
}

impl Config {
    /// The settings of a service with one executor over the embedded chain.
    pub fn new(environment: Environment, key_pepper: [u8; 32], sealing_keys: impl Into<SealingKeys>) -> Self {
        Self {
            environment,
            key_pepper,
            sealing_keys: sealing_keys.into(),
            lanes: 1,
            confirmations: Some(1),
            finality: Finality::default(),
            confirmation_window_ms: 5 * domain::time::MINUTE_MS,
            intent_lifetime_ms: 10 * domain::time::MINUTE_MS,
            lease_ms: 15_000,
            max_batches_in_flight: 4,
            resend_after_ms: 5_000,
            replace_after_ms: 30_000,
            idempotency_ms: domain::time::DAY_MS,
            redemptions: Redemptions::default(),
            min_trade: DEFAULT_MINIMUM,
            min_claim: DEFAULT_MINIMUM,
            default_slippage_bps: DEFAULT_SLIPPAGE_BPS,
            max_fee_per_gas: None,
            webhooks: webhooks::Settings::default(),
        }
    }
}

const GWEI: u128 = 1_000_000_000;

/// The most wei that are paid for a unit of gas if no ceiling is configured: several times what the chain asks on a busy day. Gas
/// costs nothing on an embedded chain and on a developer's node.
pub const fn default_max_fee_per_gas(chain_id: u64) -> u128 {
    match chain_id {
        31_337 | 1_337 => u128::MAX,
        1 => 100 * GWEI,
        137 => 1_000 * GWEI,
        10 | 8_453 | 42_161 => 5 * GWEI,
        _ => 500 * GWEI,
    }
}

/// Signals that there is work, so that workers need not poll fast.
#[derive(Debug, Default)]
pub struct Wake {
    /// A trade is pending.
    pub executor: Notify,
    /// The chain has moved.
    pub sync: Notify,
}

impl Ctx {
    /// A context of these parts.
    pub fn new(
        store: Store,
        chain: Chain,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        config: Config,
    ) -> Self {
        Self {
            store,
            chain,
            clock,
            entropy,
            config: Arc::new(config),
            wake: Arc::default(),
            usage: Arc::default(),
            markets: Arc::new(Fresh::within_bytes(KEPT_MARKETS_BYTES)),
            turns: Arc::default(),
            user_units: Arc::default(),
            switches: Arc::default(),
            key_cache: Arc::default(),
            allowlists: Arc::default(),
            key_audit: Arc::default(),
            feed: Arc::default(),
            leaderboards: Arc::default(),
            limits: Arc::default(),
            degradations: Arc::default(),
            workers: Arc::default(),
            dispatching: Arc::default(),
            ids: Arc::default(),
        }
    }

    /// The state that markets read from now on are in.
    pub fn markets_as_of(&self) -> AsOf {
        AsOf { version: self.store.markets_version(), at: self.now() }
    }

    /// The state that what was kept of this market must have been read in to be as good as new at `now`.
    pub fn market_as_of(&self, id: MarketId, now: Timestamp) -> AsOf {
        AsOf { version: self.store.market_version(id), at: now }
    }

    /// The present instant.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Blocks, the trade's own included, that make a trade final.
    pub fn confirmations(&self) -> u64 {
        self.config.confirmations.unwrap_or_else(|| default_confirmations(self.chain.chain_id()))
    }

    /// The most wei that are paid for a unit of gas.
    pub fn max_fee_per_gas(&self) -> u128 {
        self.config.max_fee_per_gas.unwrap_or_else(|| default_max_fee_per_gas(self.chain.chain_id()))
    }

    /// A new id, which sorts behind those made before.
    pub fn uuid(&self) -> Uuid {
        self.ids.next(self.entropy.as_ref(), self.now())
    }

    /// Random bytes.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }
}
