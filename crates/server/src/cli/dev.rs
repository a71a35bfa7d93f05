//! `foretell dev`: everything embedded, with a demonstration.

use std::path::Path;
use std::sync::Arc;

use app::entropy::Entropy;
use clap::Args;
use domain::market::MarketStatus;
use domain::page::Page;
use domain::time::{DAY_MS, MINUTE_MS, ManualClock, SystemClock};
use domain::{Clock, Timestamp};
use store::{Store, StoreError};

use super::{make_data_dir, start_logging};
use crate::config::{Config, WebhookTargets};
use crate::dev::{DevFile, DevMarket, OWNERS_FILE, clock_route, rpc_route, seed};
use crate::entropy::SystemEntropy;
use crate::run::{Parts, Running, StartError, listen, lock_folder, signalled};
use crate::secrets::Secrets;
use crate::service_file::ServiceFile;

/// What only `foretell dev` takes.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// Forget what the data folder holds and begin anew
    #[arg(long)]
    reset: bool,
    /// Let POST /dev/clock/advance {"ms": n} move the service's and the chain's time
    #[arg(long)]
    test_clock: bool,
}

/// The files of the data folder that a demonstration consists of.
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

pub async fn run(args: DevArgs, mut config: Config) -> Result<(), StartError> {
    start_logging("warn");
    config.webhook_targets.get_or_insert(WebhookTargets::Local);
    if !config.rpc_urls.is_empty() {
        return Err(StartError::Other(
            "`foretell dev` has its chain embedded; use `foretell serve` with --rpc-url".into(),
        ));
    }
    make_data_dir(&config)?;
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy::default());
    let known = if args.reset { None } else { DevFile::read(&config.data_dir)? };
    // The address first: a port that is taken is found before anything is made.
    let (listener, address) = listen(config.listen)?;
    let base_url = format!("http://{address}");
    let users = match known {
        Some(known) => known.users,
        None => {
            // Without dev.json there is nothing, or a demonstration that was cut short while it was made. A service that
            // runs on the folder keeps it.
            drop(lock_folder(&config.data_dir)?);
            forget(&config.data_dir)?;
            make_demonstration(&config, Arc::clone(&entropy)).await?
        }
    };
    let secrets = Secrets::load(&config.secrets_file)?;
    let clock = Arc::new(SystemClock::default());
    let parts = Parts::open(&config, secrets, Arc::clone(&clock) as Arc<dyn Clock>, entropy).await?;
    let node = parts.node.clone().ok_or_else(|| StartError::Other("the chain is not embedded".into()))?;
    // Time that a test clock has moved stays moved: the service never lives before its chain's newest block.
    let head = Timestamp::from_s(parts.ctx.chain.head().await?.timestamp_s);
    clock.advance(head.since_ms(parts.ctx.now()).max(0));

    let mut beside = rpc_route(Arc::clone(&node));
    if args.test_clock {
        beside = beside.merge(clock_route(clock, node, parts.ctx.clone()));
    }
    let service = ServiceFile::new(&parts, &config, &base_url);
    service.write(&config.data_dir)?;
    let file = DevFile {
        base_url: service.base_url.clone(),
        rpc_url: service.rpc_url.clone(),
        chain_id: service.chain_id,
        contracts: service.contracts.clone(),
        users,
        markets: list_markets(&parts.ctx.store).await?,
    };
    file.write(&config.data_dir)?;
    let running = Running::start(
        &parts,
        parts.state(&config, &service.base_url)?,
        listener,
        beside,
        config.first_block,
    )?;
    print_welcome(&file, &config.data_dir, parts.ctx.uuid());
    signalled().await;
    running.stop().await;
    Ok(())
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
    config: &Config,
    entropy: Arc<dyn Entropy>,
) -> Result<Vec<crate::dev::DevUser>, StartError> {
    eprintln!("Making a demonstration: 20 markets, 12 accounts and a week of trades …");
    let secrets = Secrets::generate(entropy.as_ref(), 2);
    secrets.save(&config.secrets_file)?;
    // The week and some minutes for what comes before its trades: it must not end in the future.
    let start = SystemClock::default().now().plus_ms(-7 * DAY_MS - 5 * MINUTE_MS);
    let clock = Arc::new(ManualClock::new(start));
    let parts = Parts::open(config, secrets, Arc::clone(&clock) as Arc<dyn Clock>, entropy).await?;
    let users = seed(&parts, &clock, &config.data_dir).await?;
    parts.ctx.store.close().await;
    Ok(users)
}

async fn list_markets(store: &Store) -> Result<Vec<DevMarket>, StartError> {
    let page = Page { limit: domain::page::MAX_PAGE, after: None };
    let listed: Result<Vec<_>, StoreError> = store
        .read(page, |tx, page| {
            Box::pin(
                async move { store::markets::list(tx, &store::markets::ListFilter::default(), page).await },
            )
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

fn print_welcome(file: &DevFile, data_dir: &Path, idempotency_key: uuid::Uuid) {
    let DevFile { base_url, rpc_url, chain_id, .. } = file;
    let keys = file.users.first().map(|user| user.keys.as_slice()).unwrap_or_default();
    let key =
        keys.iter().find(|key| key.tier == "developer").or(keys.first()).map_or("", |key| key.key.as_str());
    let open = file.markets.iter().find(|market| market.status == MarketStatus::Open.as_str());
    let market = open.map_or("", |market| market.id.as_str());
    println!(
        r#"
Foretell is ready.

  API        {base_url}
  JSON-RPC   {rpc_url}  (chain {chain_id})
  API key    {key}
  More       {}

Markets, a quote, a trade:

  curl -s '{base_url}/v1/markets?limit=3' -H 'X-API-Key: {key}'

  curl -s '{base_url}/v1/markets/{market}/quote?outcomeIndex=0&action=buy&amount=25000000' -H 'X-API-Key: {key}'

  curl -s -X POST '{base_url}/v1/trades' -H 'X-API-Key: {key}' -H 'Content-Type: application/json' -H 'Idempotency-Key: {idempotency_key}' -d '{{"marketId": "{market}", "outcomeIndex": 0, "side": "buy", "amount": "25.00"}}'
"#,
        DevFile::path(data_dir).display(),
    );
}
