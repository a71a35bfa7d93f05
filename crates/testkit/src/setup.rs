//! How a test application comes to be.

use std::sync::Arc;
use std::time::Duration;

use alloy::providers::{DynProvider, Provider as _, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy_primitives::U256;
use app::entropy::SeededEntropy;
use app::finality::Finality;
use app::limits::Limits;
use app::redemptions::Redemptions;
use app::sealed::SealingKey;
use app::{Config, Ctx};
use chain::embedded::InProcess;
use chain::{Chain, Contracts, DeploySettings, EmbeddedNode, Genesis, Nodes, Signer, calls, deploy};
use domain::key::Environment;
use domain::time::ManualClock;
use domain::webhook::target::TargetPolicy;
use domain::{Timestamp, Usdc};
use store::Store;

use crate::branches::Branches;
use crate::faults::{Faults, Faulty};
use crate::{RpcProxy, TestApp, Workers};

/// When every test begins.
pub const START: Timestamp = Timestamp::from_s(1_800_000_000);
/// The chain's id.
pub const CHAIN_ID: u64 = 31_337;
const GENESIS_BALANCE: u128 = 1_000_000_000_000_000_000_000_000;
const MARKET_FUNDS: u64 = 1_000_000_000_000_000;
const HOURLY_VOLUME: u64 = 10_000_000_000_000;

/// The key that follows from a number: 1 to 6 are the roles', those from 100 on the executors.
///
/// # Panics
/// Never for these numbers.
pub fn signer(number: u8) -> Signer {
    Signer::random([number; 32]).expect("a number's key is below the group's order")
}

/// The operator's keys.
#[derive(Debug, Clone)]
pub struct Roles {
    /// Deployed the contracts and mints USDC.
    pub deployer: Signer,
    /// Makes and settles markets.
    pub resolver: Signer,
    /// Freezes and pauses.
    pub guardian: Signer,
    /// Receives fees.
    pub treasury: Signer,
    /// Carries owners' batches.
    pub relayer: Signer,
    /// Is nobody here, and has native currency.
    pub stranger: Signer,
    /// The lanes' keys.
    pub executors: Vec<Signer>,
}

impl Roles {
    fn new(lanes: u16) -> Self {
        let lanes = u8::try_from(lanes).expect("a test has few lanes");
        Self {
            deployer: signer(1),
            resolver: signer(2),
            guardian: signer(3),
            treasury: signer(4),
            relayer: signer(5),
            stranger: signer(6),
            executors: (0..lanes).map(|lane| signer(100 + lane)).collect(),
        }
    }

    /// Everybody who sends transactions.
    pub fn all(&self) -> impl Iterator<Item = &Signer> {
        let roles =
            [&self.deployer, &self.resolver, &self.guardian, &self.treasury, &self.relayer, &self.stranger];
        roles.into_iter().chain(&self.executors)
    }
}

/// What differs from [`TestApp::new`].
#[derive(Default)]
pub struct Setup {
    store: Option<Store>,
    provider: Option<DynProvider>,
    lanes: Option<u16>,
    confirmations: Option<u64>,
    finality: Finality,
    redemptions: Redemptions,
    minimum: Usdc,
    default_slippage_bps: Option<u16>,
    max_fee_per_gas: Option<u128>,
    hourly_volume: Option<u64>,
    veto_window_s: u32,
    forkable: bool,
    limits: Option<Limits>,
    nodes: usize,
    agreement: usize,
}

impl Setup {
    /// On this database, which has all migrations.
    #[must_use]
    pub fn on(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Over this node, whose chain has nothing on it and whose id is [`CHAIN_ID`]; it gives anybody native currency by
    /// `anvil_setBalance`.
    #[must_use]
    pub fn over(mut self, provider: DynProvider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// With this many executors.
    #[must_use]
    pub const fn lanes(mut self, lanes: u16) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// With trades final at this depth.
    #[must_use]
    pub const fn confirmations(mut self, confirmations: u64) -> Self {
        self.confirmations = Some(confirmations);
        self
    }

    /// With trades final only if the chain itself marks their block as final, besides its depth.
    #[must_use]
    pub const fn finalized(mut self) -> Self {
        self.finality = Finality::Finalized;
        self
    }

    /// With winnings that the service pays by itself.
    #[must_use]
    pub const fn automatic_redemptions(mut self) -> Self {
        self.redemptions = Redemptions::Automatic;
        self
    }

    /// With trades and claims of at least this much; anything goes otherwise.
    #[must_use]
    pub const fn minimum(mut self, usdc: Usdc) -> Self {
        self.minimum = usdc;
        self
    }

    /// With this slippage for requests that do not bound the price; they trade at any price otherwise.
    #[must_use]
    pub const fn default_slippage_bps(mut self, bps: u16) -> Self {
        self.default_slippage_bps = Some(bps);
        self
    }

    /// With at most this many wei paid for a unit of gas; anything is paid otherwise.
    #[must_use]
    pub const fn max_fee_per_gas(mut self, wei: u128) -> Self {
        self.max_fee_per_gas = Some(wei);
        self
    }

    /// With contracts that let trades move at most this much within an hour.
    #[must_use]
    pub const fn hourly_volume(mut self, usdc: Usdc) -> Self {
        self.hourly_volume = Some(usdc.atomic());
        self
    }

    /// With results that can be vetoed for this long before they are final.
    #[must_use]
    pub const fn veto_window_s(mut self, seconds: u32) -> Self {
        self.veto_window_s = seconds;
        self
    }

    /// On a chain that can abandon a branch; see [`TestApp::branches`].
    #[must_use]
    pub const fn forkable(mut self) -> Self {
        self.forkable = true;
        self
    }

    /// Over HTTP to this many nodes of one embedded chain, each behind a proxy of its own; see [`TestApp::proxies`].
    #[must_use]
    pub const fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// With this many nodes that must have a block before it is final.
    #[must_use]
    pub const fn agreement(mut self, agreement: usize) -> Self {
        self.agreement = agreement;
        self
    }

    /// With its limiters there instead of in memory.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Builds it: contracts deployed, the resolver with the funds of many markets.
    ///
    /// # Panics
    /// Where any of that fails.
    pub async fn start(self) -> TestApp {
        let lanes = self.lanes.unwrap_or(1);
        let roles = Roles::new(lanes);
        let store = match self.store {
            Some(store) => store,
            None => store::testing::sqlite().await,
        };
        let clock = Arc::new(ManualClock::new(START));
        let faults = Faults::default();
        let mut branches = None;
        let provider = match self.provider {
            Some(provider) => {
                for signer in roles.all() {
                    let balance = (signer.address(), U256::from(GENESIS_BALANCE));
                    let _: Option<bool> =
                        provider.raw_request("anvil_setBalance".into(), balance).await.unwrap();
                }
                provider
            }
            None => {
                let node = || embedded(&roles, &clock);
                let is_double = self.forkable || self.nodes > 0;
                let nodes = Branches::new(if is_double { [node(), node()] } else { twice(node()) });
                let provider = if is_double {
                    over(Faulty { inner: nodes.transport(), faults: faults.clone() })
                } else {
                    over(Faulty { inner: InProcess::new(Arc::clone(nodes.shown())), faults: faults.clone() })
                };
                branches = Some(nodes);
                provider
            }
        };
        let hourly_volume = self.hourly_volume.unwrap_or(HOURLY_VOLUME);
        let mut chain = contracts(provider, &roles, self.veto_window_s, hourly_volume).await;
        let mut proxies = Vec::new();
        if let Some(branches) = branches.as_ref().filter(|_| self.nodes > 0) {
            branches.part();
            for _ in 0..self.nodes {
                proxies.push(RpcProxy::embedded(branches.shown()).await);
            }
            chain = over_proxies(&proxies, self.agreement.max(1), chain.contracts().clone());
        }
        let sealing_key = SealingKey { id: "test".to_owned(), key: [7; 32] };
        let mut config = Config::new(Environment::Test, [9; 32], sealing_key);
        config.lanes = lanes;
        config.confirmations = self.confirmations.or(config.confirmations);
        config.finality = self.finality;
        config.redemptions = self.redemptions;
        config.max_fee_per_gas = self.max_fee_per_gas;
        config.min_trade = self.minimum;
        config.min_claim = self.minimum;
        config.default_slippage_bps = self.default_slippage_bps.unwrap_or(10_000);
        config.webhooks.targets = TargetPolicy::development();
        let mut ctx = Ctx::new(store, chain, clock.clone(), Arc::new(SeededEntropy::new(1)), config);
        ctx.limits = self.limits.map_or(ctx.limits, Arc::new);
        let workers = Workers::new(&roles.executors, "one");
        TestApp { ctx, clock, roles, workers, faults, branches, proxies }
    }
}

fn over_proxies(proxies: &[RpcProxy], agreement: usize, contracts: Contracts) -> Chain {
    let urls: Vec<String> = proxies.iter().map(|proxy| proxy.url().to_owned()).collect();
    let nodes = Nodes::new(&urls, agreement, &contracts).unwrap();
    Chain::over(&nodes, contracts).with_poll_interval(Duration::from_millis(5))
}

fn twice(node: Arc<EmbeddedNode>) -> [Arc<EmbeddedNode>; 2] {
    [Arc::clone(&node), node]
}

fn embedded(roles: &Roles, clock: &Arc<ManualClock>) -> Arc<EmbeddedNode> {
    let genesis = Genesis {
        chain_id: CHAIN_ID,
        balances: roles.all().map(|signer| (signer.address(), U256::from(GENESIS_BALANCE))).collect(),
        timestamp: START,
        gas_limit: 60_000_000,
        base_fee: 1_000_000_000,
    };
    EmbeddedNode::in_memory(genesis, clock.clone()).unwrap()
}

fn over<T>(transport: T) -> DynProvider
where
    T: alloy::transports::IntoBoxTransport,
{
    let client = RpcClient::new(transport, true).with_poll_interval(Duration::from_millis(5));
    ProviderBuilder::new().disable_recommended_fillers().connect_client(client).erased()
}

async fn contracts(provider: DynProvider, roles: &Roles, veto_window_s: u32, hourly_volume: u64) -> Chain {
    let settings = DeploySettings {
        usdc: None,
        resolver: roles.resolver.address(),
        guardian: roles.guardian.address(),
        treasury: roles.treasury.address(),
        executors: roles.executors.iter().map(Signer::address).collect(),
        hourly_volume_cap_usdc_atomic: hourly_volume,
        listing_delay_s: 0,
        veto_window_s,
    };
    let contracts = deploy::deploy(provider.clone(), CHAIN_ID, &roles.deployer, settings).await.unwrap();
    let chain =
        Chain::connect(provider, contracts).await.unwrap().with_poll_interval(Duration::from_millis(5));
    let (usdc, hub) = (chain.contracts().usdc, chain.contracts().hub);
    let mint = calls::mint(roles.resolver.address(), U256::from(MARKET_FUNDS));
    chain.transact(&roles.deployer, Some(usdc), mint).await.unwrap();
    chain.transact(&roles.resolver, Some(usdc), calls::approve(hub, U256::MAX)).await.unwrap();
    chain
}
