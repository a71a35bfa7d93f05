//! `foretell dev`: runs the service with all parts embedded, and with sample data.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use app::entropy::Entropy;
use app::test_clock::TestClock;
use clap::Args;
use domain::market::MarketStatus;
use domain::page::Page;
use domain::time::{DAY_MS, MINUTE_MS, ManualClock, SystemClock};
use domain::{Clock, Timestamp};
use store::Store;

use crate::config::{EnvironmentSetting, ResolvedConfig, Switch, WebhookTargets};
use crate::data_folder;
use crate::dev::{DevFile, DevMarket, DevTime, OWNERS_FILE, read_sample_users, seed, simulate};
use crate::entropy::SystemEntropy;
use crate::ops::{Ops, OpsEndpoint};
use crate::private_hosts::PrivateHosts;
use crate::rpc::{OptionalListen, RpcEndpoints};
use crate::run::{Parts, PublicEndpoint, Running, default_app_url, listen, lock_folder};
use crate::secrets::Secrets;
use crate::service_file::ServiceFile;
use crate::start_checks;
use crate::start_error::StartError;

/// The options of `foretell dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// Delete the data in the data folder and start again
    #[arg(long)]
    reset: bool,
    /// Let holders of API keys move the time of the service and the chain forward, with POST
    /// /v1/sandbox/clock
    #[arg(long)]
    test_clock: bool,
    /// Let the sample users trade, so that prices move
    #[arg(long)]
    simulate: bool,
    /// Let callers of the chain's JSON-RPC mine blocks (evm_mine, foretell_mine)
    #[arg(long)]
    rpc_test_methods: bool,
}

/// Default address of the chain's JSON-RPC. Tools expect a local chain at this port.
const RPC_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8545);

/// Files of the data folder that belong to the demonstration.
const FILES: [&str; 11] = [
    "dev.json",
    "service.json",
    "contracts.json",
    "secrets.json",
    OWNERS_FILE,
    "foretell.db",
    "foretell.db-wal",
    "foretell.db-shm",
    "chain.db",
    "chain.db-wal",
    "chain.db-shm",
];

pub async fn run(args: DevArgs, mut config: ResolvedConfig) -> Result<(), StartError> {
    let log_level = crate::logging::start(config.log_level.as_deref().unwrap_or("warn"));
    config.ops_listen.get_or_insert(OptionalListen::Off);
    // Developers usually receive webhooks on their own machine.
    config.webhook_targets.get_or_insert(WebhookTargets::Local);
    if !config.rpc_urls.is_empty() {
        return Err(StartError::Other(
            "`foretell dev` only works with the embedded chain: use `foretell serve` with --rpc-url".into(),
        ));
    }
    data_folder::prepare(&config)?;
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy::default());
    let known = if args.reset { None } else { DevFile::read(&config.data_dir)? };
    // Listen first, so that an occupied port fails before anything is created.
    let (listener, address) = listen(config.listen)?;
    let base_url = format!("http://{address}");
    config.web.get_or_insert(Switch::On);
    config.web_admin.get_or_insert(Switch::On);
    config.mcp.get_or_insert(Switch::On);
    if config.environment == EnvironmentSetting::Test {
        config.sandbox.get_or_insert(Switch::On);
    }
    // Passkeys do not work on 127.0.0.1.
    config.local_url = Some(format!("http://localhost:{}", address.port()));
    let users = match known {
        Some(known) => known.users,
        None => {
            // Without dev.json the folder is empty, or seeding was interrupted: start over. Taking
            // the lock protects the files of a service that is running on this folder.
            drop(lock_folder(&config.data_dir)?);
            forget(&config.data_dir)?;
            make_demonstration(&config, Arc::clone(&entropy)).await?
        }
    };
    config.sample_users = read_sample_users(&config.data_dir, &users)?;
    let secrets = Secrets::load(&config.secrets_file)?;
    let clock = Arc::new(SystemClock::default());
    let mut parts = Parts::open(&config, secrets, Arc::clone(&clock) as Arc<dyn Clock>, entropy).await?;
    start_checks::raise_limit();
    parts.limit_connections(start_checks::fitting_connections(&parts.ctx, &config));
    let node = parts.node.clone().ok_or_else(|| StartError::Other("the chain is not embedded".into()))?;
    // Time that the test clock was advanced by persists in the chain. The service must not run at
    // an earlier time than the chain's newest block.
    let head = Timestamp::from_s(parts.ctx.chain.head().await?.timestamp_s);
    clock.advance(head.since_ms(parts.ctx.now()).max(0));

    if args.test_clock {
        let time = Arc::new(DevTime { clock, node: Arc::clone(&node) });
        parts.test_clock = Some(Arc::new(TestClock::new(time)));
    }
    let endpoints = bind_rpc(&config)?;
    let rpc_url = endpoints.http_url().unwrap_or_else(|| endpoints.socket_url().to_owned());
    let ops = OpsEndpoint::bind(&config)?;
    let service = ServiceFile::new(&parts, &config, Some(base_url.clone()), endpoints.socket_url())
        .at_ops(ops.as_ref().map(OpsEndpoint::url));
    service.write(&config.data_dir)?;
    let file = DevFile {
        base_url: base_url.clone(),
        rpc_url,
        chain_id: service.chain_id,
        contracts: service.contracts.clone(),
        users,
        markets: list_markets(&parts.ctx.store).await?,
    };
    file.write(&config.data_dir)?;
    let hosts = PrivateHosts::new(&config.private_hosts);
    let rpc = endpoints.serve(node, args.rpc_test_methods, hosts.clone());
    let traces = parts.export_traces(&config)?;
    let state = parts.state(&config, &base_url)?;
    let endpoint = PublicEndpoint { state, listener };
    let mut running = Running::start(&parts, Some(endpoint), config.first_block)?;
    print_welcome(&file, &config.data_dir, parts.ctx.uuid(), args.rpc_test_methods);
    let simulation = args.simulate.then(|| tokio::spawn(simulate(file)));
    let ops = ops.map(|endpoint| {
        endpoint.serve(Ops {
            ctx: parts.ctx.clone(),
            roles: config.roles.clone(),
            draining: running.draining(),
            shutdown_delay: config.shutdown_delay,
            log_level,
            hosts,
        })
    });
    running.serve_until_stopped(config.shutdown_delay).await;
    if let Some(simulation) = simulation {
        simulation.abort();
    }
    running.stop().await;
    if let Some(traces) = traces {
        traces.stop().await;
    }
    if let Some(ops) = ops {
        ops.stop().await;
    }
    rpc.stop().await;
    Ok(())
}

/// Binds the chain's JSON-RPC. If no address is configured and the usual port is occupied, another
/// port is used.
fn bind_rpc(config: &ResolvedConfig) -> Result<RpcEndpoints, StartError> {
    let bind = |listen| RpcEndpoints::bind(&config.data_dir, listen);
    let any_port = || bind(OptionalListen::At(SocketAddr::new(RPC_ADDRESS.ip(), 0)));
    match config.rpc_listen {
        Some(listen) => bind(listen),
        // A listen port of 0 means that several services run side by side, for example in tests.
        None if config.listen.port() == 0 => any_port(),
        None => bind(OptionalListen::At(RPC_ADDRESS)).or_else(|_| any_port()),
    }
}

fn forget(data_dir: &Path) -> Result<(), StartError> {
    for name in FILES {
        let path = data_dir.join(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(StartError::File { path: path.display().to_string(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

async fn make_demonstration(
    config: &ResolvedConfig,
    entropy: Arc<dyn Entropy>,
) -> Result<Vec<crate::dev::DevUser>, StartError> {
    eprintln!("Creating demo data: 20 markets, 12 accounts and a week of trades …");
    let secrets = Secrets::generate(entropy.as_ref(), 2);
    secrets.save(&config.secrets_file)?;
    // One week, and a few minutes for the steps before its first trade, so that seeding does not
    // end in the future.
    let start = SystemClock::default().now().plus_ms(-7 * DAY_MS - 5 * MINUTE_MS);
    let clock = Arc::new(ManualClock::new(start));
    let parts = Parts::open(config, secrets, Arc::clone(&clock) as Arc<dyn Clock>, entropy).await?;
    let users = seed(&parts, &clock, &config.data_dir).await?;
    parts.ctx.store.close().await;
    Ok(users)
}

async fn list_markets(store: &Store) -> Result<Vec<DevMarket>, StartError> {
    let page = Page { limit: domain::page::MAX_PAGE, after: None };
    let listed = store
        .read(page, |tx, page| {
            Box::pin(async move {
                store::markets::list(tx, &store::markets::MarketListFilter::default(), page).await
            })
        })
        .await;
    let markets = listed?.into_iter().map(|(market, outcomes)| DevMarket {
        id: market.id.to_string(),
        question: market.question,
        status: market.status.to_string(),
        outcomes: outcomes.into_iter().map(|outcome| outcome.label).collect(),
    });
    Ok(markets.collect())
}

fn print_welcome(file: &DevFile, data_dir: &Path, idempotency_key: uuid::Uuid, test_methods: bool) {
    let DevFile { base_url, rpc_url, chain_id, .. } = file;
    let app_url = default_app_url(base_url);
    let keys = file.users.first().map(|user| user.keys.as_slice()).unwrap_or_default();
    let key =
        keys.iter().find(|key| key.tier == "developer").or(keys.first()).map_or("", |key| key.key.as_str());
    let open = file.markets.iter().find(|market| market.status == MarketStatus::Open.as_str());
    let market = open.map_or("", |market| market.id.as_str());
    let mining = if test_methods { "; callers can mine blocks: evm_mine, foretell_mine" } else { "" };
    println!(
        r#"
Foretell is ready.

  Site       {app_url}
  API        {base_url}
  JSON-RPC   {rpc_url}  (chain {chain_id}{mining})
  API key    {key}
  More       {1}

Become an admin, who runs the service at {app_url}/admin: sign up with a passkey, then

  foretell admin user list --limit 1 --data-dir '{0}'

  foretell admin user promote ID --data-dir '{0}'

Markets, a quote, a trade:

  curl -s '{base_url}/v1/markets?limit=3' -H 'X-API-Key: {key}'

  curl -s '{base_url}/v1/markets/{market}/quote?outcomeIndex=0&action=buy&amount=25000000' -H 'X-API-Key: {key}'

  curl -s -X POST '{base_url}/v1/trades' -H 'X-API-Key: {key}' -H 'Content-Type: application/json' -H 'Idempotency-Key: {idempotency_key}' -d '{{"marketId": "{market}", "outcomeIndex": 0, "side": "buy", "amount": "25.00"}}'
"#,
        data_dir.display(),
        DevFile::path(data_dir).display(),
    );
}
