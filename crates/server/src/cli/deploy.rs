//! `foretell deploy`: the contracts, onto a chain that has none of them yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{Address, U256};
use chain::{Chain, Contracts, DeploySettings, Signer};
use clap::Args;
use domain::time::SystemClock;
use domain::{Clock, Usdc};
use store::audit_log::Actor;
use store::{Schema, Store};

use super::start_logging;
use crate::config::{Config, one_url};
use crate::data_folder;
use crate::deployment::{self, Deployment};
use crate::entropy::SystemEntropy;
use crate::run::{StartError, read_contracts, write_contracts};
use crate::secrets::Secrets;

/// What the contracts are deployed with. None of it but the roles can be changed later.
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// The chain's USDC; a test token is deployed where absent
    #[arg(long)]
    usdc: Option<Address>,
    /// How many executors to make keys for, where there is no secrets file yet
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    executors: u16,
    /// USDC that all accounts together may move in an hour
    #[arg(long, default_value = "1000000")]
    hourly_volume_cap: Usdc,
    /// Seconds that a market is listed before it opens
    #[arg(long, default_value_t = 0)]
    listing_delay_s: u32,
    /// Seconds during which a resolution can be vetoed
    #[arg(long, default_value_t = 0)]
    veto_window_s: u32,
    /// Private key that pays for the deployment and for the roles' first gas; the secrets' deployer where absent
    #[arg(long, env = "FORETELL_FUNDER_KEY", hide_env_values = true)]
    funder_key: Option<String>,
    /// A file that holds the funder's private key
    #[arg(long, env = "FORETELL_FUNDER_KEY_FILE")]
    funder_key_file: Option<PathBuf>,
    /// Native currency, in wei, that the funder sends to each role and executor
    #[arg(long)]
    fund_wei: Option<u128>,
    /// Deploy nothing: compare the contracts on the chain with this program and with deployment.json
    #[arg(long)]
    verify: bool,
}

pub async fn run(args: DeployArgs, config: &Config, actor: &Actor) -> Result<(), StartError> {
    start_logging("info");
    let url = config.rpc_urls.first().ok_or_else(|| {
        StartError::Other("set --rpc-url: the embedded chain deploys its contracts by itself".into())
    })?;
    if args.verify {
        return verify(config, url).await;
    }
    data_folder::prepare(config)?;
    let secrets = Secrets::load_or_generate(&config.secrets_file, &SystemEntropy::default(), args.executors)?;
    let roles = &secrets.roles;
    let (deployer, executors) = (roles.deployer()?, secrets.executors()?);
    let (resolver, guardian) = (roles.resolver()?, roles.guardian()?);
    let (treasury, relayer) = (roles.treasury()?, roles.relayer()?);
    let provider = chain::http_provider(url)?;
    // No contracts yet: this handle only sends native currency.
    let nowhere = Address::ZERO;
    let none = Contracts { usdc: nowhere, hub: nowhere, gate: nowhere, account_factory: nowhere };
    let chain = Chain::connect(provider.clone(), none).await?;
    let funder_key = one_url("funder-key", args.funder_key, args.funder_key_file)?;
    match (&funder_key, args.fund_wei) {
        (Some(key), Some(wei)) => {
            let funder = Signer::from_hex(key)?;
            for signer in [&deployer, &resolver, &guardian, &treasury, &relayer].into_iter().chain(&executors)
            {
                chain.send_native(&funder, signer.address(), U256::from(wei)).await?;
            }
        }
        (Some(_), None) => {
            return Err(StartError::Other(
                "give --fund-wei: how much native currency the funder sends to each role and executor"
                    .to_owned(),
            ));
        }
        (None, Some(_)) => {
            return Err(StartError::Other("give --funder-key-file: who sends --fund-wei".to_owned()));
        }
        (None, None) if chain.native_balance(deployer.address()).await?.is_zero() => {
            return Err(StartError::Other(format!(
                "the deployer {} cannot pay for gas: send it native currency, or give --funder-key and --fund-wei",
                deployer.address()
            )));
        }
        (None, None) => {}
    }
    let settings = DeploySettings {
        usdc: args.usdc,
        resolver: resolver.address(),
        guardian: guardian.address(),
        treasury: treasury.address(),
        executors: executors.iter().map(Signer::address).collect(),
        hourly_volume_cap_usdc_atomic: args.hourly_volume_cap.atomic(),
        listing_delay_s: args.listing_delay_s,
        veto_window_s: args.veto_window_s,
    };
    let contracts = chain::deploy::deploy(provider, chain.chain_id(), &deployer, settings.clone()).await?;
    let deployed = Chain::connect(chain::http_provider(url)?, contracts.clone()).await?;
    check(&deployed, &settings).await?;
    write_contracts(&config.contracts, &contracts)?;
    let clock: Arc<dyn Clock> = Arc::<SystemClock>::default();
    let deployment = Deployment::new(clock.now(), actor, chain.chain_id(), contracts.clone(), &settings);
    deployment.write(&config.data_dir)?;
    log(config, &clock).await?;
    println!("{}", serde_json::to_string_pretty(&contracts).unwrap_or_default());
    Ok(())
}

/// Compares the contracts on the chain with this program's code and with the deployment that the data folder tells of.
async fn verify(config: &Config, url: &str) -> Result<(), StartError> {
    let recorded = deployment::read(&config.data_dir)?.ok_or_else(|| {
        StartError::Other(format!(
            "there is no deployment.json in {}: its roles and settings are compared",
            config.data_dir.display()
        ))
    })?;
    let chain = Chain::connect(chain::http_provider(url)?, read_contracts(&config.contracts)?).await?;
    if chain.chain_id() != recorded.chain_id() {
        return Err(StartError::Other(format!(
            "the contracts were deployed on chain {}, and the node is on chain {}",
            recorded.chain_id(),
            chain.chain_id()
        )));
    }
    check(&chain, &recorded.settings()).await?;
    println!("the contracts on chain {} are as deployed", chain.chain_id());
    Ok(())
}

/// Refuses contracts whose code, roles or settings are not as expected.
async fn check(chain: &Chain, expected: &DeploySettings) -> Result<(), StartError> {
    chain::deploy::verify(chain).await?;
    let differences = chain.deployment_differences(expected).await?;
    if differences.is_empty() {
        return Ok(());
    }
    Err(StartError::Other(format!("the contracts are not as expected:\n  {}", differences.join("\n  "))))
}

/// Enters the deployment into the audit log, if there is a database already; otherwise the first migration does.
async fn log(config: &Config, clock: &Arc<dyn Clock>) -> Result<(), StartError> {
    let path = config.database_url.strip_prefix("sqlite:").map(Path::new);
    if path.is_some_and(|path| !path.exists()) {
        return Ok(());
    }
    let Ok(store) = Store::open(&config.database_url).await else { return Ok(()) };
    if store.schema().await? == Schema::Current {
        crate::migrate::log_deployment(&store, clock, &config.data_dir).await?;
    }
    store.close().await;
    Ok(())
}
