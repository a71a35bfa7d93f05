//! The service assembled and running: database, chain, workers, HTTP.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::Ctx;
use app::entropy::Entropy;
use app::keys::audit;
use app::kill_switches;
use app::limits::Limits;
use chain::embedded::{EmbeddedNode, Genesis};
use chain::{Chain, ChainIdentity, Contracts, DeploySettings, Nodes, Signer};
use domain::Clock;
use domain::page::CursorCodec;
use store::Store;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::config::{Config, Environment};
use crate::http::{AppState, KeptBodies, ServeLimits, Server, Shared};
use crate::secrets::Secrets;

/// The embedded chain's id: the one that developers' tools know as a local chain.
pub const EMBEDDED_CHAIN_ID: u64 = 31_337;
/// What each of the operator's keys owns at the embedded chain's beginning, in wei: more gas than it can ever use.
const GENESIS_BALANCE: u128 = 1_000_000_000_000_000_000_000_000_000;
const GENESIS_BASE_FEE: u64 = 1_000_000_000;
const BLOCK_GAS_LIMIT: u64 = 60_000_000;
/// All accounts together may move this much an hour on the embedded chain, in USDC atomic units.
const EMBEDDED_HOURLY_VOLUME: u64 = 10_000_000_000_000;
/// Connections that may wait to be accepted: what comes at once beyond it, the system forgets without a word.
const LISTEN_QUEUE: u32 = 4_096;
/// How long a start waits for nodes.
const NODES_AT_START: Duration = Duration::from_secs(3);

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file of the data folder.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The secrets.
    #[error(transparent)]
    Secrets(#[from] crate::secrets::SecretsError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The database.
    #[error("database: {0}")]
    Store(#[from] store::StoreError),
    /// The embedded chain.
    #[error("embedded chain: {0}")]
    Embedded(#[from] chain::embedded::EmbeddedError),
    /// The chain or its contracts.
    #[error("chain: {0}")]
    Chain(#[from] chain::ChainError),
    /// A use case that a command runs.
    #[error("{0}")]
    App(#[from] app::AppError),
    /// What keeps a catalogue from being imported.
    #[error("nothing was imported:{}", .0.iter().map(|problem| format!("\n  {problem}")).collect::<String>())]
    Import(Vec<app::import::Problem>),
    /// The state of what a command works on does not allow it.
    #[error("{0}")]
    InvalidState(String),
    /// The operator did not consent to what cannot be undone.
    #[error("{0}")]
    Unconfirmed(String),
    /// Anything that a sentence says best.
    #[error("{0}")]
    Other(String),
}

impl StartError {
    /// The error as programs read it.
    pub fn to_json(&self) -> serde_json::Value {
        let message = match self {
            Self::App(error) => error.detail.clone(),
            other => other.to_string(),
        };
        let mut error = serde_json::json!({ "code": self.code(), "message": message });
        if let Self::Import(problems) = self {
            let problem = |of: &app::import::Problem| {
                let mut problem = serde_json::json!({ "path": of.path, "detail": of.detail });
                if let Some(line) = of.line {
                    problem["line"] = line.into();
                }
                problem
            };
            error["problems"] = problems.iter().map(problem).collect();
        }
        serde_json::json!({ "error": error })
    }

    /// A word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::App(error) => error.code.as_str(),
            Self::Chain(_) | Self::Embedded(_) => "CHAIN",
            Self::Store(_) => "DATABASE",
            Self::Config(_) | Self::Secrets(_) | Self::File { .. } => "CONFIGURATION",
            Self::Import(_) => "IMPORT_REFUSED",
            Self::InvalidState(_) => "INVALID_STATE",
            Self::Unconfirmed(_) => "NOT_CONFIRMED",
            Self::Other(_) => "COMMAND",
        }
    }

    /// The exit code of a command that failed with this. 2 is for arguments that cannot be parsed.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::InvalidState(_) => 3,
            Self::Unconfirmed(_) => 4,
            _ => 1,
        }
    }
}

/// The parts of a service, before it runs.
pub struct Parts {
    /// What the use cases get.
    pub ctx: Ctx,
    /// The embedded chain, where it is the one in use.
    pub node: Option<Arc<EmbeddedNode>>,
    /// The service's secrets.
    pub secrets: Secrets,
    /// Bounds of the HTTP connections.
    connections: ServeLimits,
    /// Held for as long as the embedded chain is open.
    _lock: Option<File>,
}

/// An embedded chain belongs to one process: two would each mine a chain of their own into the same file.
pub fn lock_folder(data_dir: &Path) -> Result<File, StartError> {
    let path = data_dir.join("lock");
    let fail = |source| StartError::File { path: path.display().to_string(), source };
    let file = File::create(&path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(StartError::Other(format!("another foretell runs on {}", data_dir.display())))
        }
        Err(TryLockError::Error(source)) => Err(fail(source)),
    }
}

async fn end_what_was_held(tx: &mut store::Tx) -> Result<(), store::StoreError> {
    store::leases::end_all(tx).await?;
    store::webhooks::end_holds(tx).await
}

impl Parts {
    /// Opens the database and the chain, and brings both up to date: migrations, and the contracts on the embedded chain.
    pub async fn open(
        config: &Config,
        secrets: Secrets,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StartError> {
        let lock = if config.rpc_urls.is_empty() { Some(lock_folder(&config.data_dir)?) } else { None };
        let store = Store::open(&config.database_url).await?;
        crate::migrate::apply(&store, &clock, crate::actor::service(), &config.data_dir).await?;
        let (chain, node) = match config.rpc_urls.is_empty() {
            false => (over_nodes(config)?, None),
            true => {
                let (chain, node) = open_embedded(config, &secrets, Arc::clone(&clock)).await?;
                (chain, Some(node))
            }
        };
        if lock.is_some() {
            // Nobody else lives on this chain, so what an earlier life of this process held is free.
            let ended: Result<(), store::StoreError> =
                store.write((), |tx, ()| Box::pin(end_what_was_held(tx))).await;
            ended?;
        }
        let executors = secrets.executors()?;
        let mut settings =
            app::Config::new(config.environment.into(), secrets.key_pepper()?, secrets.sealing_keys()?);
        settings.lanes = u16::try_from(executors.len()).unwrap_or(u16::MAX);
        if let Some(window_s) = config.confirmation_window_s {
            settings.confirmation_window_ms = i64::from(window_s) * 1_000;
        }
        // The embedded chain never takes a block back.
        settings.confirmations = config.confirmations.or(node.is_some().then_some(1));
        settings.finality = config.finality.into();
        settings.redemptions = config.redemptions.into();
        settings.min_trade = config.min_trade;
        settings.min_claim = config.min_claim;
        settings.default_slippage_bps = config.default_slippage_bps;
        settings.max_fee_per_gas = config.max_fee_per_gas;
        settings.webhooks.targets = config.targets().into();
        let mut ctx = Ctx::new(store, chain, clock, entropy, settings);
        ctx.limits = Arc::new(limits(config)?);
        if let Err(error) = ctx.limits.ping().await {
            tracing::error!(%error, "the rate limiter does not answer: not ready until it does");
        }
        look_for_nodes(&ctx).await?;
        // What is off stays off through a restart, from the first request on.
        kill_switches::refresh(&ctx).await?;
        Ok(Self { ctx, node, secrets, connections: config.connections, _lock: lock })
    }

    /// The HTTP surface's state.
    pub fn state(&self, config: &Config, base_url: &str) -> Result<Shared, StartError> {
        Ok(Arc::new(AppState {
            ctx: self.ctx.clone(),
            cursor: CursorCodec::new(self.secrets.cursor_key()?),
            docs_url: config.docs_url.clone().unwrap_or_else(|| format!("{base_url}/docs")),
            app_url: config.app_url.clone().unwrap_or_else(|| base_url.to_owned()),
            trusted_proxies: config.trusted_proxies.clone(),
            versions: domain::version::VERSIONS,
            started_at: self.ctx.now(),
            kept: KeptBodies::default(),
            cards: Default::default(),
            sitemaps: Default::default(),
            mutations: TaskTracker::new(),
        }))
    }
}

/// The limiters where the configuration puts them. The names of the keys in Redis tell the two environments apart.
pub fn limits(config: &Config) -> Result<Limits, StartError> {
    let Some(url) = &config.redis_url else { return Ok(Limits::memory()) };
    let prefix = match config.environment {
        Environment::Live => "foretell:live",
        Environment::Test => "foretell:test",
    };
    Limits::redis(url, prefix).map_err(|error| StartError::Other(error.to_string()))
}

/// The chain behind the configured nodes. It may be that none of them can be reached yet.
fn over_nodes(config: &Config) -> Result<Chain, StartError> {
    let contracts = read_contracts(&config.contracts)?;
    let nodes = Nodes::new(&config.rpc_urls, config.node_agreement, &contracts)?;
    let deployment = crate::deployment::read(&config.data_dir)?;
    if let Some(chain_id) = deployment.and_then(|deployment| deployment.chain_of(&contracts)) {
        nodes.expect(ChainIdentity { chain_id, genesis_hash: None });
    }
    Ok(Chain::over(&nodes, contracts))
}

/// Checks the nodes. The service starts without them: reads and webhooks work, and trading waits for a node.
async fn look_for_nodes(ctx: &Ctx) -> Result<(), StartError> {
    let Some(nodes) = ctx.chain.nodes() else { return Ok(()) };
    if let Ok(looked) = tokio::time::timeout(NODES_AT_START, app::nodes::refresh(ctx)).await {
        looked?;
    }
    if !nodes.is_available() {
        tracing::error!("no node of the chain can be used: trading waits until there is one");
    }
    Ok(())
}

async fn open_embedded(
    config: &Config,
    secrets: &Secrets,
    clock: Arc<dyn Clock>,
) -> Result<(Chain, Arc<EmbeddedNode>), StartError> {
    let roles = &secrets.roles;
    let (deployer, resolver, guardian) = (roles.deployer()?, roles.resolver()?, roles.guardian()?);
    let (treasury, relayer, executors) = (roles.treasury()?, roles.relayer()?, secrets.executors()?);
    let funded = [&deployer, &resolver, &guardian, &treasury, &relayer].into_iter().chain(&executors);
    let genesis = Genesis {
        chain_id: EMBEDDED_CHAIN_ID,
        balances: funded
            .map(|signer| (signer.address(), alloy_primitives::U256::from(GENESIS_BALANCE)))
            .collect(),
        timestamp: clock.now(),
        gas_limit: BLOCK_GAS_LIMIT,
        base_fee: GENESIS_BASE_FEE,
    };
    let node = EmbeddedNode::open(&config.data_dir.join("chain.db"), genesis, clock)?;
    let settings = DeploySettings {
        usdc: None,
        resolver: resolver.address(),
        guardian: guardian.address(),
        treasury: treasury.address(),
        executors: executors.iter().map(Signer::address).collect(),
        hourly_volume_cap_usdc_atomic: EMBEDDED_HOURLY_VOLUME,
        listing_delay_s: 0,
        veto_window_s: 0,
    };
    // From the deployer's first nonce every time: contracts that stand already are passed over.
    let contracts =
        chain::deploy::deploy_from(node.provider(), EMBEDDED_CHAIN_ID, &deployer, settings, 0).await?;
    write_contracts(&config.contracts, &contracts)?;
    Ok((Chain::embedded(&node, contracts), node))
}

/// Reads the contracts' addresses.
pub fn read_contracts(path: &Path) -> Result<Contracts, StartError> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| StartError::File { path: name.clone(), source })?;
    serde_json::from_str(&text)
        .map_err(|error| StartError::Other(format!("{name} holds no contracts: {error}")))
}

/// Writes the contracts' addresses.
pub fn write_contracts(path: &Path, contracts: &Contracts) -> Result<(), StartError> {
    let text = serde_json::to_string_pretty(contracts).unwrap_or_default();
    std::fs::write(path, text + "\n")
        .map_err(|source| StartError::File { path: path.display().to_string(), source })
}

/// A service that runs.
pub struct Running {
    ctx: Ctx,
    mutations: TaskTracker,
    stop: watch::Sender<bool>,
    workers: JoinSet<()>,
    http: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts the workers, and serves the API and the routes `beside` it on `listener`.
    pub fn start(
        parts: &Parts,
        state: Shared,
        listener: TcpListener,
        beside: axum::Router<Shared>,
        first_block: u64,
    ) -> Result<Self, StartError> {
        let (stop, stopped) = watch::channel(false);
        let ctx = parts.ctx.clone();
        let workers = crate::workers::start(parts, first_block, &stopped)?;
        let mut stop_http = stopped;
        let mutations = state.mutations.clone();
        let of_refusals = Shared::clone(&state);
        let refuse = Arc::new(move |ip, unread| crate::http::refuse(&of_refusals, ip, unread));
        let trusted_proxies = state.trusted_proxies.clone();
        let router = crate::router::router_with(state, beside);
        let server = Server { listener, router, refuse, limits: parts.connections, trusted_proxies };
        let http = tokio::spawn(server.run(async move {
            // An error means that the sender is gone: the service is being dropped.
            drop(stop_http.wait_for(|stop| *stop).await);
        }));
        Ok(Self { ctx, mutations, stop, workers, http })
    }

    /// Takes no new requests, lets those that run and the workers' ticks come to their end, gives the leases up.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // Streams have no end of their own, and the drain waits for every answer.
        self.ctx.feed.close();
        if let Err(error) = self.http.await {
            tracing::error!(%error, "the HTTP server ended badly");
        }
        // A client that has hung up no longer holds its connection open, but its trade is still being written.
        self.mutations.close();
        self.mutations.wait().await;
        while let Some(ended) = self.workers.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a worker ended badly");
            }
        }
        // After the last request was answered, which the flusher did not wait for.
        if let Err(error) = app::usage::flush(&self.ctx).await {
            tracing::warn!(%error, cause = ?error.source, "the last seconds of keys' use were not kept");
        }
        // The last requests may have failed after the audit's worker had stopped.
        if let Err(error) = audit::flush(&self.ctx).await {
            tracing::warn!(%error, "the last failed authentications were not written");
        }
        self.ctx.store.close().await;
    }
}

/// A listener on `address`, and the address that it really has.
pub fn listen(address: std::net::SocketAddr) -> Result<(TcpListener, std::net::SocketAddr), StartError> {
    let fail = |source| StartError::File { path: address.to_string(), source };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(fail)?;
    socket.set_reuseaddr(true).map_err(fail)?;
    socket.bind(address).map_err(fail)?;
    let listener = socket.listen(LISTEN_QUEUE).map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok((listener, bound))
}

/// Ends on SIGINT or SIGTERM.
pub async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        drop(tokio::signal::ctrl_c().await);
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
