//! `foretell deploy`: the contracts, onto a chain that has none of them yet.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, U256};
use chain::{Chain, Contracts, DeploySettings, Signer};
use clap::Args;
use domain::time::SystemClock;
use domain::{Clock, Usdc};
use store::audit_log::Actor;
use store::{Schema, Store};

use super::{make_data_dir, start_logging};
use crate::config::Config;
use crate::deployment::Deployment;
use crate::entropy::SystemEntropy;
use crate::run::{StartError, write_contracts};
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
    /// Native currency, in wei, that the funder sends to each role and executor
    #[arg(long, default_value_t = 1_000_000_000_000_000_000)]
    fund_wei: u128,
}

pub async fn run(args: DeployArgs, config: &Config, actor: &Actor) -> Result<(), StartError> {
    start_logging("info");
    let url = config.rpc_urls.first().ok_or_else(|| {
        StartError::Other("set --rpc-url: the embedded chain deploys its contracts by itself".into())
    })?;
    make_data_dir(config)?;
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
    if let Some(key) = &args.funder_key {
        let funder = Signer::from_hex(key)?;
        let funded = [&deployer, &resolver, &guardian, &treasury, &relayer].into_iter().chain(&executors);
        for signer in funded {
            chain.send_native(&funder, signer.address(), U256::from(args.fund_wei)).await?;
        }
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
    write_contracts(&config.contracts, &contracts)?;
    let clock: Arc<dyn Clock> = Arc::<SystemClock>::default();
    let deployment = Deployment::new(clock.now(), actor, chain.chain_id(), contracts.clone(), &settings);
    deployment.write(&config.data_dir)?;
    log(config, &clock).await?;
    println!("{}", serde_json::to_string_pretty(&contracts).unwrap_or_default());
    Ok(())
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
