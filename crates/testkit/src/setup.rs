//! Setup of test applications.

use std::sync::Arc;
use std::time::Duration;

use alloy::providers::{DynProvider, Provider as _, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy_primitives::{B256, U256};
use app::config::{Finality, OwnerActLimits, Redemptions, RoleKeys, WebSettings};
use app::encryption::SealingKey;
use app::entropy::SeededEntropy;
use app::limits::Limits;
use app::limits::budget::BudgetShares;
use app::{Config, Ctx};
use chain::{Chain, Contracts, DeploySettings, Nodes, Signer, calls, deploy};
use domain::Usdc;
use domain::key::Environment;
use domain::time::ManualClock;
use domain::webhook::target::TargetPolicy;
use embedded_chain::{EmbeddedNode, Genesis, InProcess};
use store::Store;
use tokio::sync::Mutex;

use crate::branches::Branches;
use crate::faults::{Faults, Faulty};
use crate::genesis::{CHAIN_ID, START};
use crate::{Roles, RpcProxy, TestApp, Workers};

const GENESIS_BALANCE: u128 = 1_000_000_000_000_000_000_000_000;
const MARKET_FUNDS: u64 = 1_000_000_000_000_000;
const HOURLY_VOLUME: u64 = 10_000_000_000_000;

/// Differences from [`TestApp::new`].
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
    role_delay_s: u32,
    forkable: bool,
    limits: Option<Limits>,
    budgets: BudgetShares,
    owner_acts: Option<OwnerActLimits>,
    nodes: usize,
    agreement: usize,
    sandbox: bool,
}

impl TestApp {
    /// Starts an application with a new SQLite database, the embedded chain and one lane.
    pub async fn new() -> Self {
        Setup::default().start().await
    }

    /// Returns a setup with the defaults, to be changed and then started.
    pub fn with() -> Setup {
        Setup::default()
    }
}

impl Setup {
    /// Uses this database, which must have all migrations.
    #[must_use]
    pub fn on(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Uses this node. Its chain must be empty, have the id [`CHAIN_ID`], and support
    /// `anvil_setBalance`.
    #[must_use]
    pub fn over(mut self, provider: DynProvider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets the number of executors.
    #[must_use]
    pub const fn lanes(mut self, lanes: u16) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// Sets the depth at which trades are final.
    #[must_use]
    pub const fn confirmations(mut self, confirmations: u64) -> Self {
        self.confirmations = Some(confirmations);
        self
    }

    /// Makes trades final only if the chain also marks their block as finalized.
    #[must_use]
    pub const fn finalized(mut self) -> Self {
        self.finality = Finality::Finalized;
        self
    }

    /// Makes the service pay winnings automatically.
    #[must_use]
    pub const fn automatic_redemptions(mut self) -> Self {
        self.redemptions = Redemptions::Automatic;
        self
    }

    /// Changes shares of budgets, such as `streams.address=2`.
    #[must_use]
    pub fn budgets<const N: usize>(mut self, settings: [&str; N]) -> Self {
        self.budgets = self.budgets.with(settings.map(|text| text.parse().expect("a share of a budget")));
        self
    }

    /// Sets the minimum of trades and claims. There is none by default.
    #[must_use]
    pub const fn minimum(mut self, usdc: Usdc) -> Self {
        self.minimum = usdc;
        self
    }

    /// Sets the slippage for requests that do not limit the price. By default they trade at any
    /// price.
    #[must_use]
    pub const fn default_slippage_bps(mut self, bps: u16) -> Self {
        self.default_slippage_bps = Some(bps);
        self
    }

    /// Sets the maximum gas price in wei. There is none by default.
    #[must_use]
    pub const fn max_fee_per_gas(mut self, wei: u128) -> Self {
        self.max_fee_per_gas = Some(wei);
        self
    }

    /// Sets the contracts' hourly volume limit.
    #[must_use]
    pub const fn hourly_volume(mut self, usdc: Usdc) -> Self {
        self.hourly_volume = Some(usdc.atomic());
        self
    }

    /// Sets the time for which results can be vetoed.
    #[must_use]
    pub const fn veto_window_s(mut self, seconds: u32) -> Self {
        self.veto_window_s = seconds;
        self
    }

    /// Sets the delay of new holders of roles and new executors.
    #[must_use]
    pub const fn role_delay_s(mut self, seconds: u32) -> Self {
        self.role_delay_s = seconds;
        self
    }

    /// Uses a chain that can be reorganized; see [`TestApp::branches`].
    #[must_use]
    pub const fn forkable(mut self) -> Self {
        self.forkable = true;
        self
    }

    /// Connects over HTTP to this many nodes of one embedded chain, each behind its own proxy; see
    /// [`TestApp::proxies`].
    #[must_use]
    pub const fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets the number of nodes that must have a block before it is final.
    #[must_use]
    pub const fn agreement(mut self, agreement: usize) -> Self {
        self.agreement = agreement;
        self
    }

    /// Uses these limiters instead of in-memory ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets the limits of acts that the service pays for. By default accounts may be empty.
    #[must_use]
    pub const fn owner_acts(mut self, limits: OwnerActLimits) -> Self {
        self.owner_acts = Some(limits);
        self
    }

    /// Lets clients provoke outcomes of trades.
    #[must_use]
    pub const fn sandbox(mut self) -> Self {
        self.sandbox = true;
        self
    }

    fn deploy_settings(&self, roles: &Roles) -> DeploySettings {
        DeploySettings {
            usdc: None,
            owner: roles.owner.address(),
            resolver: roles.resolver.address(),
            guardian: roles.guardian.address(),
            treasury: roles.treasury.address(),
            executors: roles.executors.iter().map(Signer::address).collect(),
            hourly_volume_cap_usdc_atomic: self.hourly_volume.unwrap_or(HOURLY_VOLUME),
            other_hourly_caps: Default::default(),
            role_delay_s: self.role_delay_s,
            listing_delay_s: 0,
            veto_window_s: self.veto_window_s,
            min_freeze_s: 0,
            reference_period_s: DeploySettings::DEFAULT_REFERENCE_PERIOD_S,
            result_deadline_s: DeploySettings::NO_RESULT_DEADLINE_S,
            salt: B256::ZERO,
        }
    }

    /// Builds the application, with deployed contracts and a resolver with funds for many markets.
    pub async fn start(self) -> TestApp {
        let lanes = self.lanes.unwrap_or(1);
        let roles = Roles::new(lanes);
        let settings = self.deploy_settings(&roles);
        let store = match self.store {
            Some(store) => store,
            None => store::testing::sqlite().await,
        };
        let clock = Arc::new(ManualClock::new(START));
        let faults = Faults::default();
        let mut branches = None;
        let mut chain = match self.provider {
            Some(provider) => {
                for signer in roles.all() {
                    let balance = (signer.address(), U256::from(GENESIS_BALANCE));
                    let _: Option<bool> =
                        provider.raw_request("anvil_setBalance".into(), balance).await.unwrap();
                }
                Box::pin(deploy_contracts(provider, &roles, settings)).await
            }
            None => {
                let deployed = Box::pin(Deployed::with(settings, &roles)).await;
                let node = || deployed.node.fork(clock.clone()).unwrap();
                let is_double = self.forkable || self.nodes > 0;
                let nodes = Branches::new(if is_double { [node(), node()] } else { twice(node()) });
                let provider = if is_double {
                    over(Faulty { inner: nodes.transport(), faults: faults.clone() })
                } else {
                    over(Faulty { inner: InProcess::new(Arc::clone(nodes.shown())), faults: faults.clone() })
                };
                branches = Some(nodes);
                connect(provider, deployed.contracts.clone()).await
            }
        };
        let mut proxies = Vec::new();
        if let Some(branches) = branches.as_ref().filter(|_| self.nodes > 0) {
            // The proxies forward to one node directly, so the hidden branch receives no further
            // transactions.
            branches.part();
            for _ in 0..self.nodes {
                proxies.push(RpcProxy::embedded(branches.shown()).await);
            }
            chain = over_proxies(&proxies, self.agreement.max(1), chain.contracts().clone());
        }
        let sealing_key = SealingKey { id: "test".to_owned(), key: [7; 32].into() };
        let mut config = Config::new(Environment::Test, [9; 32], sealing_key);
        config.executors = roles.executors.iter().map(Signer::address).collect();
        config.confirmations = self.confirmations.or(config.confirmations);
        config.finality = self.finality;
        config.redemptions = self.redemptions;
        config.max_fee_per_gas = self.max_fee_per_gas;
        config.min_trade = self.minimum;
        config.min_claim = self.minimum;
        config.default_slippage_bps = self.default_slippage_bps.unwrap_or(10_000);
        config.webhooks.targets = TargetPolicy::development();
        config.owner_acts = self.owner_acts.unwrap_or(config.owner_acts);
        config.sandbox = self.sandbox;
        config.budgets = self.budgets;
        config.faucet = Some(roles.deployer.clone());
        let role_keys = RoleKeys {
            resolver: Some(roles.resolver.clone()),
            guardian: Some(roles.guardian.clone()),
            minter: Some(roles.deployer.clone()),
        };
        config.web = Some(WebSettings {
            party: crate::relying_party(),
            is_admin_on: true,
            role_keys,
            terms_url: None,
            country_rule: None,
        });
        let ctx = Ctx::new(store, chain, clock.clone(), Arc::new(SeededEntropy::new(1)), config)
            .with_limits(self.limits.unwrap_or_default());
        app::lanes::register(&ctx).await.unwrap();
        let workers = Workers::of(&ctx, &roles.executors, "one");
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

/// A chain that only has the contracts. Tests get copies of it, because a deployment takes longer than
/// most tests.
struct Deployed {
    settings: DeploySettings,
    node: Arc<EmbeddedNode>,
    contracts: Contracts,
}

impl Deployed {
    /// Returns the chain with these settings, which the first test with them deploys.
    async fn with(settings: DeploySettings, roles: &Roles) -> Arc<Self> {
        static CHAINS: Mutex<Vec<Arc<Deployed>>> = Mutex::const_new(Vec::new());
        let mut chains = CHAINS.lock().await;
        if let Some(chain) = chains.iter().find(|chain| chain.settings == settings) {
            return Arc::clone(chain);
        }
        let chain = Arc::new(Self::deploy(settings, roles).await);
        chains.push(Arc::clone(&chain));
        chain
    }

    async fn deploy(settings: DeploySettings, roles: &Roles) -> Self {
        let genesis = Genesis {
            chain_id: CHAIN_ID,
            balances: roles.all().map(|signer| (signer.address(), U256::from(GENESIS_BALANCE))).collect(),
            timestamp: START,
            gas_limit: 60_000_000,
            base_fee: 1_000_000_000,
        };
        let node = EmbeddedNode::in_memory(genesis, Arc::new(ManualClock::new(START))).unwrap();
        let provider = over(InProcess::new(Arc::clone(&node)));
        let chain = deploy_contracts(provider, roles, settings.clone()).await;
        Self { settings, node, contracts: chain.contracts().clone() }
    }
}

fn over<T>(transport: T) -> DynProvider
where
    T: alloy::transports::IntoBoxTransport,
{
    let client = RpcClient::new(transport, true).with_poll_interval(Duration::from_millis(5));
    ProviderBuilder::new().disable_recommended_fillers().connect_client(client).erased()
}

/// Deploys the contracts, and gives the resolver funds for many markets.
async fn deploy_contracts(provider: DynProvider, roles: &Roles, settings: DeploySettings) -> Chain {
    let contracts = deploy::deploy(provider.clone(), CHAIN_ID, &roles.deployer, settings).await.unwrap();
    let chain = connect(provider, contracts).await;
    let (usdc, hub) = (chain.contracts().usdc, chain.contracts().hub);
    let mint = calls::mint(roles.resolver.address(), U256::from(MARKET_FUNDS));
    chain.transact(&roles.deployer, Some(usdc), mint).await.unwrap();
    chain.transact(&roles.resolver, Some(usdc), calls::approve(hub, U256::MAX)).await.unwrap();
    chain
}

async fn connect(provider: DynProvider, contracts: Contracts) -> Chain {
    Chain::connect(provider, contracts).await.unwrap().with_poll_interval(Duration::from_millis(5))
}
