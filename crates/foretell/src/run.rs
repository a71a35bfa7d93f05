//! Assembles and runs the service: database, chain, workers and HTTP.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::Ctx;
use app::config::RoleKeys;
use app::entropy::Entropy;
use app::keys::audit;
use app::kill_switches;
use app::limits::Limits;
use app::metrics::RouteLabel;
use app::test_clock::TestClock;
use chain::{Chain, ChainIdentity, Contracts, DeploySettings, Nodes, Role, Signer};
use domain::Clock;
use embedded_chain::{EmbeddedError, EmbeddedNode, Genesis};
use http_kit::{AppState, ConnectionMeter, ResponseCache, Route, ServeLimits, Server, Shared};
use protocol::CursorCodec;
use secrecy::ExposeSecret;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{EnvironmentSetting, ResolvedConfig, Switch};
use crate::database;
use crate::nats::NatsSettings;
use crate::process_roles::{ProcessRole, ProcessRoles, SecretName};
use crate::secrets::{Secrets, SecretsError, read_key_file};
use crate::start_error::StartError;
use crate::storage_files;
use crate::traces::TraceExport;
use crate::workers::WorkerSettings;

/// Chain id of the embedded chain. Development tools recognize it as a local chain.
pub const EMBEDDED_CHAIN_ID: u64 = 31_337;
/// Genesis balance of each of the operator's keys, in wei: more gas than the key can ever use.
const GENESIS_BALANCE: u128 = 1_000_000_000_000_000_000_000_000_000;
const GENESIS_BASE_FEE: u64 = 1_000_000_000;
const BLOCK_GAS_LIMIT: u64 = 60_000_000;
/// Hourly volume cap of all accounts together on the embedded chain, in USDC atomic units.
const EMBEDDED_HOURLY_VOLUME: u64 = 10_000_000_000_000;
/// Length of the accept queue. The kernel silently drops connections beyond it.
const LISTEN_QUEUE: u32 = 4_096;
/// Maximum time that a start waits for the nodes.
const NODES_AT_START: Duration = Duration::from_secs(3);

/// The maximum duration of a stop after the delay of its drain. Supervisors kill a process after 45
/// seconds, of which the delay and the last spans take five each.
pub const STOP: Duration = Duration::from_secs(30);
/// The parts of a stop: running requests and ticks end, the last counts are stored, and the database is
/// closed.
const LAST_WORK: Duration = Duration::from_secs(20);
const LAST_WRITES: Duration = Duration::from_secs(7);
const CLOSING: Duration = Duration::from_secs(3);
const _: () = assert!(LAST_WORK.as_secs() + LAST_WRITES.as_secs() + CLOSING.as_secs() == STOP.as_secs());

/// The parts of a service before it runs.
pub struct Parts {
    pub ctx: Ctx,
    /// The embedded chain, if it is the chain in use.
    pub node: Option<Arc<EmbeddedNode>>,
    pub secrets: Secrets,
    /// The parts of the service that this process runs.
    pub roles: ProcessRoles,
    /// The stream that gets all events, if any.
    nats: Option<NatsSettings>,
    connections: ServeLimits,
    /// The clock that clients may move.
    pub test_clock: Option<Arc<TestClock>>,
    /// Lock on the data folder, held while the embedded chain is open.
    _lock: Option<File>,
}

/// Locks the data folder. Two processes on one embedded chain would each mine their own blocks into
/// the same file.
pub fn lock_folder(data_dir: &Path) -> Result<File, StartError> {
    let path = data_dir.join("lock");
    let fail = |source| StartError::File { path: path.display().to_string(), source };
    let file = File::create(&path).map_err(fail)?;
    // The kernel releases the lock when the process dies, so no stale lock can remain.
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(StartError::Other(format!("another foretell process runs on {}", data_dir.display())))
        }
        Err(TryLockError::Error(source)) => Err(fail(source)),
    }
}

async fn end_what_was_held(tx: &mut store::Tx) -> Result<(), store::StoreError> {
    store::leases::end_all(tx).await?;
    store::webhooks::end_holds(tx).await
}

impl Parts {
    /// Opens the database and the chain, and deploys the contracts on the embedded chain. Outside of
    /// the environment `live`, applies the migrations.
    pub async fn open(
        config: &ResolvedConfig,
        secrets: Secrets,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StartError> {
        // Only an embedded chain needs the lock. Several processes may share a database and nodes.
        let lock = if config.rpc_urls.is_empty() { Some(lock_folder(&config.data_dir)?) } else { None };
        if lock.is_some() {
            storage_files::require_database(config)?;
        }
        let store = database::open(config).await?;
        storage_files::check_database(&store).await?;
        match config.environment {
            // A migration must not begin because a process happened to restart.
            EnvironmentSetting::Live => {
                database::require_current_schema(&store).await?;
                crate::migrate::log_deployment(&store, &clock, &config.deployment).await?;
            }
            EnvironmentSetting::Test => {
                crate::migrate::apply(&store, &clock, crate::actor::service(), &config.deployment).await?;
            }
        }
        let (chain, node, chain_check) = match config.rpc_urls.is_empty() {
            false => (over_nodes(config)?, None, None),
            true => {
                let check = storage_files::check_chain(config).await?;
                storage_files::require_chain(config, &store).await?;
                let (chain, node) = open_embedded(config, &secrets, Arc::clone(&clock)).await?;
                (chain, Some(node), check)
            }
        };
        if lock.is_some() {
            // The lock guarantees that no other process uses this chain. All leases and holds
            // belong to an earlier run, so waiting for their expiry would only delay the start.
            let ended = store.write((), |tx, ()| Box::pin(end_what_was_held(tx))).await;
            ended?;
        }
        let mut settings = app::Config::without_secrets(config.environment.into());
        if config.roles.need(SecretName::KeyPepper) {
            settings.key_pepper = Some(secrets.key_pepper()?);
        }
        if config.roles.need(SecretName::SealingKey) {
            settings.sealing_keys = secrets.sealing_keys()?;
        }
        settings.executors = crate::lanes::addresses(config, &secrets)?;
        if let Some(window_s) = config.confirmation_window_s {
            settings.confirmation_window_ms = i64::from(window_s) * 1_000;
        }
        // The embedded chain has no forks, so one confirmation is enough.
        settings.confirmations = config.confirmations.or(node.is_some().then_some(1));
        settings.finality = config.finality.into();
        settings.redemptions = config.redemptions.into();
        settings.min_trade = config.min_trade;
        settings.min_claim = config.min_claim;
        settings.default_slippage_bps = config.default_slippage_bps;
        settings.max_fee_per_gas = config.max_fee_per_gas;
        settings.owner_acts = config.owner_acts;
        settings.webhooks.targets = config.targets().into();
        settings.web = config.web_settings()?;
        if let Some(web) = settings.web.as_mut().filter(|web| web.is_admin_on) {
            web.role_keys = role_keys(config, &secrets)?;
        }
        // Only processes with other keys of the chain have the treasury's.
        let gas_treasury = config.gas_treasury.as_ref().filter(|_| config.roles.has(ProcessRole::Executor));
        settings.gas_treasury =
            gas_treasury.map(|(path, cap)| Ok::<_, StartError>((read_key_file(path)?, *cap))).transpose()?;
        // Only the demonstration has a local URL, and its deployer mints test USDC.
        settings.faucet = match config.local_url {
            Some(_) => Some(secrets.roles.deployer()?),
            None => None,
        };
        settings.sample_users.clone_from(&config.sample_users);
        settings.budgets = config.budgets.clone();
        settings.sandbox = config.sandbox == Some(Switch::On);
        // Only requests are limited, so other processes need no Redis.
        let limits = if config.roles.has(ProcessRole::Api) { limits(config)? } else { Limits::memory() };
        let ctx = Ctx::new(store, chain, clock, entropy, settings).with_limits(limits);
        if let Some(check) = chain_check {
            check.report_to(&ctx);
        }
        app::passkeys::check_relying_party(&ctx).await?;
        // Not fatal: the limiter may come back, and readiness fails until it does.
        if let Err(error) = ctx.process.limits.ping().await {
            tracing::error!(%error, "the rate limiter does not answer: the service is not ready until it does");
        }
        look_for_nodes(&ctx).await?;
        // Check after the nodes were looked for, so that a reachable chain is compared at this
        // start.
        if config.environment == EnvironmentSetting::Live && node.is_none() {
            crate::deployment::check_live(config, &ctx.chain, &secrets).await?;
        }
        // Load the switches before the first request, so that a switch stays off across a restart.
        kill_switches::refresh(&ctx).await?;
        // Only a process with the keys gives out lanes: `deployment.json` has the Gate's executors in no
        // order, and may have some that no process runs.
        if secrets.executors()?.is_empty() {
            app::lanes::refresh(&ctx).await?;
        } else {
            app::lanes::register(&ctx).await?;
        }
        // The keys can be in remote signers, which only the database knows.
        if config.roles.has(ProcessRole::Executor)
            && secrets.executors()?.is_empty()
            && app::lanes::remote(&ctx).is_empty()
        {
            return Err(SecretsError::Absent(SecretName::Executors).into());
        }
        // The lock must live as long as the chain is open, so it is stored although nothing reads
        // it.
        Ok(Self {
            ctx,
            node,
            secrets,
            roles: config.roles.clone(),
            nats: config.nats.clone(),
            connections: config.connections,
            test_clock: None,
            _lock: lock,
        })
    }

    /// Lets at most this many connections of clients be open.
    pub const fn limit_connections(&mut self, connections: usize) {
        self.connections.connections.total = connections;
    }

    /// Begins to send traces, if a collector is configured.
    pub fn export_traces(&self, config: &ResolvedConfig) -> Result<Option<TraceExport>, StartError> {
        let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
        let environment = match config.environment {
            EnvironmentSetting::Live => "live",
            EnvironmentSetting::Test => "test",
        };
        let export = TraceExport::start(endpoint, environment, &self.ctx);
        export.map(Some).map_err(|error| StartError::Other(error.to_string()))
    }

    /// Builds the state that all HTTP handlers share.
    pub fn state(&self, config: &ResolvedConfig, base_url: &str) -> Result<Shared, StartError> {
        Ok(Arc::new(AppState {
            ctx: self.ctx.clone(),
            cursor: CursorCodec::new(self.secrets.cursor_key()?),
            docs_url: config.docs_url.clone().unwrap_or_else(|| format!("{base_url}/docs")),
            app_url: config.app_url.clone().unwrap_or_else(|| default_app_url(base_url)),
            trusted_proxies: config.trusted_proxies.clone().into(),
            versions: domain::version::VERSIONS,
            started_at: self.ctx.now(),
            switchable_routes: switchable_routes(),
            responses: ResponseCache::default(),
            mcp: config.mcp_settings(),
            test_clock: self.test_clock.clone(),
            mutations: TaskTracker::new(),
        }))
    }
}

/// Returns all routes of the public listener.
fn routes() -> impl Iterator<Item = &'static Route> {
    api::v1::router::routes()
        .chain(api::public::routes())
        .chain(api::mcp::routes())
        .chain(web::routes())
        .chain(web::site_routes())
}

/// Returns the names of all routes that the operator can switch off.
pub fn switchable_routes() -> Vec<String> {
    routes().filter(|route| route.is_switchable()).map(Route::name).collect()
}

fn method_label(route: &Route) -> &'static str {
    RouteLabel::known_method(route.method.as_str())
}

/// Returns the keys with which admins of the web application act on chain.
fn role_keys(config: &ResolvedConfig, secrets: &Secrets) -> Result<RoleKeys, StartError> {
    Ok(RoleKeys {
        resolver: secrets.roles.find(Role::Resolver)?,
        guardian: secrets.roles.find(Role::Guardian)?,
        // Only test chains have USDC that the deployer can mint.
        minter: match config.environment {
            EnvironmentSetting::Test => secrets.roles.deployer().ok(),
            EnvironmentSetting::Live => None,
        },
    })
}

/// Returns the web application's URL if none is configured. Browsers have no passkeys for IP addresses,
/// but they have them for `localhost`.
pub fn default_app_url(base_url: &str) -> String {
    base_url.replacen("://127.0.0.1", "://localhost", 1)
}

/// Creates the rate limiters in Redis or in memory. The key prefix separates the two environments,
/// because they may share one Redis.
pub fn limits(config: &ResolvedConfig) -> Result<Limits, StartError> {
    let Some(url) = &config.redis_url else { return Ok(Limits::memory()) };
    let prefix = match config.environment {
        EnvironmentSetting::Live => "foretell:live",
        EnvironmentSetting::Test => "foretell:test",
    };
    Limits::redis(url.expose_secret(), prefix).map_err(|error| StartError::Other(error.to_string()))
}

/// Connects to the chain over the configured nodes. Succeeds even if no node is reachable yet.
pub fn over_nodes(config: &ResolvedConfig) -> Result<Chain, StartError> {
    let contracts = read_contracts(&config.contracts)?;
    let nodes = Nodes::new(&config.exposed_rpc_urls(), config.node_agreement, &contracts)?;
    let deployment = crate::deployment::read(&config.deployment)?;
    if let Some(chain_id) = deployment.and_then(|deployment| deployment.chain_of(&contracts)) {
        nodes.expect(ChainIdentity { chain_id, genesis_hash: None });
    }
    Ok(Chain::over(&nodes, contracts))
}

/// Checks the nodes once. The service also starts without a usable node: reads and webhooks work,
/// and trading waits.
async fn look_for_nodes(ctx: &Ctx) -> Result<(), StartError> {
    let Some(nodes) = ctx.chain.nodes() else { return Ok(()) };
    // A timeout is not an error, because a hanging node must not block the start.
    if let Ok(looked) = tokio::time::timeout(NODES_AT_START, app::nodes::refresh(ctx)).await {
        looked?;
    }
    if !nodes.is_available() {
        tracing::error!("no node of the chain is usable: trading waits until one is");
    }
    Ok(())
}

async fn open_embedded(
    config: &ResolvedConfig,
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
    let path = config.data_dir.join(storage_files::CHAIN_FILE);
    let node = EmbeddedNode::open(&path, genesis, clock).map_err(|error| match error {
        // What to do is clear from these.
        EmbeddedError::ChainId { .. } | EmbeddedError::Layout { .. } => error.into(),
        error => storage_files::unusable(&path, &error),
    })?;
    let settings = DeploySettings {
        usdc: None,
        owner: deployer.address(),
        resolver: resolver.address(),
        guardian: guardian.address(),
        treasury: treasury.address(),
        executors: executors.iter().map(Signer::address).collect(),
        hourly_volume_cap_usdc_atomic: EMBEDDED_HOURLY_VOLUME,
        other_hourly_caps: Default::default(),
        // No delays: the same operator holds all roles of an embedded chain.
        role_delay_s: 0,
        listing_delay_s: 0,
        veto_window_s: 0,
        min_freeze_s: 0,
        reference_period_s: DeploySettings::DEFAULT_REFERENCE_PERIOD_S,
        result_deadline_s: DeploySettings::NO_RESULT_DEADLINE_S,
        salt: alloy_primitives::B256::ZERO,
    };
    // Idempotent: on an existing chain it finds the deployed contracts by their addresses.
    let contracts = chain::deploy::deploy(node.provider(), EMBEDDED_CHAIN_ID, &deployer, settings).await?;
    write_contracts(&config.contracts, &contracts)?;
    Ok((Chain::embedded(&node, contracts), node))
}

/// Reads the file with the contract addresses.
pub fn read_contracts(path: &Path) -> Result<Contracts, StartError> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| StartError::File { path: name.clone(), source })?;
    serde_json::from_str(&text)
        .map_err(|error| StartError::Other(format!("{name} does not contain contract addresses: {error}")))
}

/// Writes the file with the contract addresses.
pub fn write_contracts(path: &Path, contracts: &Contracts) -> Result<(), StartError> {
    let text = serde_json::to_string_pretty(contracts).unwrap_or_default();
    std::fs::write(path, text + "\n")
        .map_err(|source| StartError::File { path: path.display().to_string(), source })
}

/// The public listener and what it serves. Only a process with the role api has one.
pub struct PublicEndpoint {
    pub state: Shared,
    pub listener: TcpListener,
}

/// A running service.
pub struct Running {
    ctx: Ctx,
    draining: CancellationToken,
    stop: watch::Sender<bool>,
    signals: StopSignals,
    workers: JoinSet<()>,
    http: Option<Serving>,
}

/// The running public listener.
struct Serving {
    mutations: TaskTracker,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    fn start(
        endpoint: PublicEndpoint,
        limits: ServeLimits,
        mut stopped: watch::Receiver<bool>,
        draining: CancellationToken,
    ) -> Self {
        let PublicEndpoint { state, listener } = endpoint;
        let mutations = state.mutations.clone();
        let of_refusals = Shared::clone(&state);
        let refuse = Arc::new(move |ip, unread| http_kit::refuse(&of_refusals, ip, unread));
        let trusted_proxies = state.trusted_proxies.clone();
        let metrics = Arc::clone(&state.ctx.process.metrics);
        metrics.routes(routes().map(|route| (RouteLabel::of(route.path), method_label(route))));
        let meter: Option<Arc<dyn ConnectionMeter>> = Some(Shared::clone(&state));
        let router = api::router(Shared::clone(&state)).merge(web::router(state));
        let metrics = Some(metrics);
        let server = Server { listener, router, refuse, limits, trusted_proxies, meter, draining, metrics };
        let task = tokio::spawn(server.run(async move {
            // An error means that the sender was dropped together with the service.
            drop(stopped.wait_for(|stop| *stop).await);
        }));
        Self { mutations, task }
    }

    /// Waits for the running requests.
    async fn end(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the HTTP server failed");
        }
        // A trade whose client has hung up is no longer tied to a connection but is still being
        // written.
        self.mutations.close();
        self.mutations.wait().await;
    }
}

impl Running {
    /// Starts the workers of the process's roles, and serves its public listener if it has one.
    pub fn start(
        parts: &Parts,
        endpoint: Option<PublicEndpoint>,
        first_block: u64,
    ) -> Result<Self, StartError> {
        // Before the first request: from then on, a signal must not cut a connection.
        let signals = StopSignals::listen();
        let (stop, stopped) = watch::channel(false);
        let ctx = parts.ctx.clone();
        let settings = WorkerSettings {
            roles: &parts.roles,
            secrets: &parts.secrets,
            nats: parts.nats.as_ref(),
            first_block,
            watches_clock: parts.test_clock.is_none(),
        };
        let workers = crate::workers::start(&ctx, &settings, &stopped)?;
        let draining = CancellationToken::new();
        let http =
            endpoint.map(|endpoint| Serving::start(endpoint, parts.connections, stopped, draining.clone()));
        Ok(Self { ctx, draining, stop, signals, workers, http })
    }

    /// Returns the token that is cancelled when the process begins to drain: it still serves, but is
    /// not ready, and each response closes its connection. Cancelling it begins the drain.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }

    /// Serves until a signal or the operator's listener requests a stop, and then for `delay`, in
    /// which load balancers notice that the process is not ready. A second signal ends the delay.
    pub async fn serve_until_stopped(&mut self, delay: Duration) {
        tokio::select! {
            () = self.signals.wait() => {}
            () = self.draining.cancelled() => {}
        }
        self.ctx.process.serving.begin_drain();
        self.draining.cancel();
        if !delay.is_zero() {
            tracing::info!(delay_s = delay.as_secs(), "draining: this process is no longer ready");
            drop(tokio::time::timeout(delay, self.signals.wait()).await);
        }
        tracing::info!("stopping");
    }

    /// Stops accepting requests, waits for running requests and worker ticks, and releases the
    /// leases. Does not wait longer than [`STOP`], whatever does not answer.
    pub async fn stop(self) {
        let Self { ctx, stop, http, mut workers, .. } = self;
        stop.send_replace(true);
        // Streams never end on their own, and the HTTP drain waits for every response.
        ctx.process.feed.close();
        let requests = async {
            if let Some(http) = http {
                http.end().await;
            }
        };
        let ticks = async {
            while let Some(ended) = workers.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(%error, "a worker failed");
                }
            }
        };
        within("running requests and ticks", LAST_WORK, async {
            tokio::join!(requests, ticks);
        })
        .await;
        // Those that have not ended are cancelled: their leases expire.
        drop(workers);
        within("the last counts", LAST_WRITES, store_counts(&ctx)).await;
        within("the database's connections", CLOSING, ctx.store.close()).await;
    }
}

/// Waits for a part of a stop, but not longer than `limit`.
async fn within(part: &'static str, limit: Duration, end: impl Future<Output = ()>) {
    if tokio::time::timeout(limit, end).await.is_err() {
        tracing::warn!(part, limit_s = limit.as_secs(), "stopping without waiting any longer");
    }
}

/// Stores what was counted after the workers that store it had stopped: the last requests, and those that
/// failed authentication. All at once, so that a database that does not answer is waited for only once.
async fn store_counts(ctx: &Ctx) {
    let (usage, requests, failures) =
        tokio::join!(app::usage::flush(ctx), app::request_log::flush(ctx), audit::flush(ctx));
    if let Err(error) = usage {
        tracing::warn!(%error, cause = ?error.source, "could not store the last seconds of key usage");
    }
    if let Err(error) = requests {
        tracing::warn!(%error, "could not store the last requests of the request log");
    }
    if let Err(error) = failures {
        tracing::warn!(%error, "could not store the last failed authentications");
    }
}

/// Binds `address` and returns the listener with its actual address, which differs for port 0.
pub fn listen(address: std::net::SocketAddr) -> Result<(TcpListener, std::net::SocketAddr), StartError> {
    let fail = |source| StartError::File { path: address.to_string(), source };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(fail)?;
    // Without this option, a restart fails while old connections are in TIME_WAIT.
    socket.set_reuseaddr(true).map_err(fail)?;
    socket.bind(address).map_err(fail)?;
    let listener = socket.listen(LISTEN_QUEUE).map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok((listener, bound))
}

/// The signals that stop the process: SIGINT and SIGTERM. From the moment it listens, they no longer
/// end the process by themselves.
struct StopSignals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl StopSignals {
    fn listen() -> Self {
        // A signal that cannot be handled ends the process, as it does by default.
        let listen = |kind| signal(kind).ok();
        Self { interrupt: listen(SignalKind::interrupt()), terminate: listen(SignalKind::terminate()) }
    }

    /// Completes on the next signal.
    async fn wait(&mut self) {
        async fn next(signal: &mut Option<Signal>) {
            let received = match signal {
                Some(signal) => signal.recv().await,
                None => None,
            };
            if received.is_none() {
                std::future::pending::<()>().await;
            }
        }
        tokio::select! {
            () = next(&mut self.interrupt) => {}
            () = next(&mut self.terminate) => {}
        }
    }
}

/// Completes on SIGINT or SIGTERM.
pub async fn signalled() {
    StopSignals::listen().wait().await;
}
