//! `foretell deploy`: deploys the contracts to a chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use chain::{Chain, DeploySettings, Signer};
use clap::Args;

use domain::time::SystemClock;
use domain::{Clock, Usdc};
use secrecy::{ExposeSecret, SecretString};
use store::Schema;
use store::audit_log::Actor;

use crate::config::{EnvironmentSetting, ResolvedConfig, secret_of};
use crate::data_folder;
use crate::database;
use crate::deployment::{self, Deployment};
use crate::entropy::SystemEntropy;
use crate::run::{read_contracts, write_contracts};
use crate::secrets::{RoleSecrets, Secrets, SecretsError};
use crate::start_error::StartError;

/// The settings of the contracts. Only roles, executors and caps can be changed later.
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// The chain's USDC [default: a test token is deployed]
    #[arg(long)]
    usdc: Option<Address>,
    /// The owner, which proposes new holders of roles and new executors: a Safe or another multisig
    /// [default in development: the deployer]
    #[arg(long, value_name = "ADDRESS")]
    owner: Option<Address>,
    /// The resolver, which creates markets and proposes results and cancels [default in
    /// development: a new key]
    #[arg(long, value_name = "ADDRESS")]
    resolver: Option<Address>,
    /// The guardian, which pauses, freezes and vetoes [default in development: a new key]
    #[arg(long, value_name = "ADDRESS")]
    guardian: Option<Address>,
    /// The treasury, which receives fees and surplus [default in development: a new key]
    #[arg(long, value_name = "ADDRESS")]
    treasury: Option<Address>,
    /// The number of executor keys to generate if there is no secrets file yet
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    executors: u16,
    /// The maximum net USDC that each executor can move out of accounts per hour
    #[arg(long, default_value = "1000000")]
    hourly_volume_cap: Usdc,
    /// Seconds for which a market is listed before it opens [default in development: 0]
    #[arg(long)]
    listing_delay_s: Option<u32>,
    /// Seconds during which a result or a cancel can be vetoed [default in development: 0]
    #[arg(long)]
    veto_window_s: Option<u32>,
    /// Seconds for which a market must be frozen before its cancel can be proposed [default in
    /// development: 0]
    #[arg(long)]
    min_freeze_s: Option<u32>,
    /// Length of a reference period in seconds. A cancel pays the prices at the start of the period
    /// before the freeze
    #[arg(long, default_value_t = DeploySettings::DEFAULT_REFERENCE_PERIOD_S,
        value_parser = clap::value_parser!(u32).range(1..))]
    reference_period_s: u32,
    /// Seconds after its close during which a market can be resolved. Later anyone may propose its
    /// cancel
    #[arg(long, default_value_t = DeploySettings::DEFAULT_RESULT_DEADLINE_S)]
    result_deadline_s: u32,
    /// Seconds after which a new holder of a role, a new executor or a higher cap takes effect, at
    /// most 30 days [default in development: 0]
    #[arg(long)]
    role_delay_s: Option<u32>,
    /// Distinguishes several deployments by one deployer: each salt gives different addresses
    #[arg(long, default_value_t = B256::ZERO, hide_default_value = true)]
    salt: B256,
    /// A file that contains the deployer's private key, which has no rights after the deployment
    /// [default in development: the deployer in the secrets file]
    #[arg(long, value_name = "FILE", env = "FORETELL_DEPLOYER_KEY_FILE")]
    deployer_key_file: Option<PathBuf>,
    /// The private key that sends --fund-wei
    #[arg(long, env = "FORETELL_FUNDER_KEY", hide_env_values = true)]
    funder_key: Option<SecretString>,
    /// A file that contains the funder's private key
    #[arg(long, env = "FORETELL_FUNDER_KEY_FILE")]
    funder_key_file: Option<PathBuf>,
    /// Native currency in wei that the funder sends to each key in the secrets file [default: none]
    #[arg(long)]
    fund_wei: Option<u128>,
    /// Deploy nothing, and compare the contracts on the chain with this program and deployment.json
    #[arg(long)]
    verify: bool,
    /// Deploy nothing, and write the current roles and executors of the chain to deployment.json
    #[arg(long, conflicts_with = "verify")]
    record: bool,
}

pub async fn run(args: DeployArgs, config: &ResolvedConfig, actor: &Actor) -> Result<(), StartError> {
    crate::logging::start("info");
    let url = config.rpc_urls.first().map(SecretString::expose_secret).ok_or_else(|| {
        StartError::Other(
            "set --rpc-url: only the contracts of an external chain are deployed with this command".into(),
        )
    })?;
    if args.verify {
        return verify(config, url).await;
    }
    let clock: Arc<dyn Clock> = Arc::<SystemClock>::default();
    if args.record {
        return record(config, url, actor, &clock).await;
    }
    if config.environment == EnvironmentSetting::Live {
        // Before anything is created: a live deployment must not use insecure defaults.
        check_live(&args)?;
    }
    data_folder::prepare(config)?;
    let secrets = secrets(&args, config)?;
    let deployer = deployer(&args, &secrets)?;
    let settings = settings(&args, config.environment, &deployer, &secrets)?;
    let provider = chain::http_provider(url)?;
    // The contracts do not exist yet: this handle is only used to send native currency.
    let nowhere = chain::deploy::addresses(deployer.address(), &settings);
    let chain = Chain::connect(provider.clone(), nowhere).await?;
    fund(&args, &chain, &deployer, &secrets).await?;
    let contracts = chain::deploy::deploy(provider, chain.chain_id(), &deployer, settings.clone()).await?;
    // A new connection, which now knows the contracts.
    let deployed = Chain::connect(chain::http_provider(url)?, contracts.clone()).await?;
    // Verify before writing any file, so that a faulty deployment is never recorded.
    deployment::check(&deployed, &settings).await?;
    write_contracts(&config.contracts, &contracts)?;
    let deployment = Deployment::new(clock.now(), actor, chain.chain_id(), contracts.clone(), &settings);
    deployment.write(&config.deployment)?;
    log(config, &clock).await?;
    eprint!("{}", powers(&settings));
    println!("{}", serde_json::to_string_pretty(&contracts).unwrap_or_default());
    Ok(())
}

/// Loads or creates the secrets file. A live deployment must not have role keys in it.
fn secrets(args: &DeployArgs, config: &ResolvedConfig) -> Result<Secrets, StartError> {
    let path = &config.secrets_file;
    let entropy = SystemEntropy::default();
    if config.environment == EnvironmentSetting::Test || path.exists() {
        let secrets = Secrets::load_or_generate(path, &entropy, args.executors)?;
        let held = secrets.roles.present();
        if config.environment == EnvironmentSetting::Live && !held.is_empty() {
            return Err(StartError::Other(format!(
                "{} contains keys of roles ({}): for a live deployment set the addresses of the roles instead",
                path.display(),
                held.join(", ")
            )));
        }
        return Ok(secrets);
    }
    let secrets = Secrets::generate_without_roles(&entropy, args.executors);
    secrets.save(path)?;
    Ok(secrets)
}

fn deployer(args: &DeployArgs, secrets: &Secrets) -> Result<Signer, StartError> {
    match secret_of("deployer-key", None, args.deployer_key_file.clone())? {
        Some(key) => Ok(Signer::from_hex(key.expose_secret())?),
        None => Ok(secrets.roles.deployer()?),
    }
}

/// Builds the deployment settings. Outside development, no setting that protects users has a
/// default.
fn settings(
    args: &DeployArgs,
    environment: EnvironmentSetting,
    deployer: &Signer,
    secrets: &Secrets,
) -> Result<DeploySettings, StartError> {
    let roles = &secrets.roles;
    let holder = |given: Option<Address>, key: fn(&RoleSecrets) -> Result<Signer, SecretsError>| {
        given.map_or_else(|| key(roles).map(|signer| signer.address()), Ok)
    };
    let settings = DeploySettings {
        usdc: args.usdc,
        owner: args.owner.unwrap_or_else(|| deployer.address()),
        resolver: holder(args.resolver, RoleSecrets::resolver)?,
        guardian: holder(args.guardian, RoleSecrets::guardian)?,
        treasury: holder(args.treasury, RoleSecrets::treasury)?,
        executors: secrets.executors()?.iter().map(Signer::address).collect(),
        hourly_volume_cap_usdc_atomic: args.hourly_volume_cap.atomic(),
        other_hourly_caps: Default::default(),
        role_delay_s: args.role_delay_s.unwrap_or_default(),
        listing_delay_s: args.listing_delay_s.unwrap_or_default(),
        veto_window_s: args.veto_window_s.unwrap_or_default(),
        min_freeze_s: args.min_freeze_s.unwrap_or_default(),
        reference_period_s: args.reference_period_s,
        result_deadline_s: args.result_deadline_s,
        salt: args.salt,
    };
    if environment == EnvironmentSetting::Live {
        check_apart(&settings, deployer.address())?;
    }
    Ok(settings)
}

fn check_live(args: &DeployArgs) -> Result<(), StartError> {
    let given = [
        ("--usdc", args.usdc.is_some()),
        ("--owner", args.owner.is_some()),
        ("--resolver", args.resolver.is_some()),
        ("--guardian", args.guardian.is_some()),
        ("--treasury", args.treasury.is_some()),
        ("--deployer-key-file", args.deployer_key_file.is_some()),
        ("--listing-delay-s", args.listing_delay_s.is_some_and(|seconds| seconds > 0)),
        ("--veto-window-s", args.veto_window_s.is_some_and(|seconds| seconds > 0)),
        ("--min-freeze-s", args.min_freeze_s.is_some_and(|seconds| seconds > 0)),
        ("--role-delay-s", args.role_delay_s.is_some_and(|seconds| seconds > 0)),
    ];
    let missing: Vec<_> = given.iter().filter(|(_, is_given)| !is_given).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(StartError::Other(format!("a live deployment needs {}; delays must be above 0", missing.join(", "))))
}

/// Checks that roles that control each other have different holders, and that no role is a key on a
/// server.
fn check_apart(settings: &DeploySettings, deployer: Address) -> Result<(), StartError> {
    let DeploySettings { owner, resolver, guardian, treasury, .. } = settings;
    if owner == resolver || owner == guardian || resolver == guardian {
        return Err(StartError::Other(
            "owner, resolver and guardian control each other: set three different addresses".to_owned(),
        ));
    }
    for (name, holder) in
        [("owner", owner), ("resolver", resolver), ("guardian", guardian), ("treasury", treasury)]
    {
        if settings.executors.contains(holder) || *holder == deployer {
            return Err(StartError::Other(format!(
                "the {name} {holder} must not be the deployer or an executor"
            )));
        }
    }
    Ok(())
}

/// Sends native currency to the keys if requested.
async fn fund(
    args: &DeployArgs,
    chain: &Chain,
    deployer: &Signer,
    secrets: &Secrets,
) -> Result<(), StartError> {
    let funder_key = secret_of("funder-key", args.funder_key.clone(), args.funder_key_file.clone())?;
    let Some(wei) = args.fund_wei else {
        if chain.native_balance(deployer.address()).await?.is_zero() {
            return Err(StartError::Other(format!(
                "the deployer {} cannot pay for gas: send native currency to it, or set --funder-key-file and --fund-wei",
                deployer.address()
            )));
        }
        return Ok(());
    };
    let funder = funder_key.ok_or_else(|| {
        StartError::Other("set --funder-key-file: --fund-wei needs the key of the sender".to_owned())
    })?;
    let funder = Signer::from_hex(funder.expose_secret())?;
    let roles = &secrets.roles;
    let keys = [&roles.deployer, &roles.resolver, &roles.guardian, &roles.treasury, &roles.relayer];
    for key in keys.into_iter().flatten().chain(&secrets.executors) {
        chain.send_native(&funder, key.signer()?.address(), U256::from(wei)).await?;
    }
    Ok(())
}

/// Describes the permissions of each role, for the operator.
fn powers(settings: &DeploySettings) -> String {
    let DeploySettings {
        owner,
        resolver,
        guardian,
        treasury,
        role_delay_s,
        veto_window_s,
        listing_delay_s,
        ..
    } = settings;
    let executors = settings.executors.iter().map(|executor| {
        let cap = Usdc::from_atomic(settings.hourly_cap_of(*executor));
        format!("{executor} ({} USDC an hour)", cap.to_decimal())
    });
    let executors: Vec<String> = executors.collect();
    format!(
        "owner     {owner}\n          proposes holders of roles, executors and caps, which take effect after {role_delay_s} s. Pauses and lowers caps at once.\n\
         guardian  {guardian}\n          vetoes results and proposals, freezes markets, pauses and resumes. Proposes a new owner.\n\
         resolver  {resolver}\n          creates markets ({listing_delay_s} s before their first trade), proposes results ({veto_window_s} s for a veto).\n\
         treasury  {treasury}\n          receives fees and surplus.\n\
         executors {}\n          trade for accounts within the limits that they set, and within the executor's net hourly cap.\n\
         None of them can move a balance. docs/custody.md says what a stolen key can take at most.\n",
        executors.join(", "),
    )
}

/// Records the chain's current roles and executors in deployment.json. Code and delays must match
/// the record, because they cannot change.
async fn record(
    config: &ResolvedConfig,
    url: &str,
    actor: &Actor,
    clock: &Arc<dyn Clock>,
) -> Result<(), StartError> {
    let (chain, recorded) = recorded(config, url).await?;
    let settings = chain.deployed_settings(&recorded.settings()).await?;
    deployment::check(&chain, &settings).await?;
    let contracts = chain.contracts().clone();
    Deployment::new(clock.now(), actor, chain.chain_id(), contracts, &settings).write(&config.deployment)?;
    print!("{}", powers(&settings));
    Ok(())
}

/// Compares the contracts on chain with this binary's code and with the recorded deployment.
async fn verify(config: &ResolvedConfig, url: &str) -> Result<(), StartError> {
    let (chain, recorded) = recorded(config, url).await?;
    deployment::check(&chain, &recorded.settings()).await?;
    println!("the contracts on chain {} match the deployment", chain.chain_id());
    Ok(())
}

/// Returns the chain and the recorded deployment, after checking that both have the same chain id.
async fn recorded(config: &ResolvedConfig, url: &str) -> Result<(Chain, Deployment), StartError> {
    let recorded = deployment::read(&config.deployment)?.ok_or_else(|| {
        StartError::Other(format!(
            "there is no {}: this command compares the contracts with it",
            config.deployment.display()
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
    Ok((chain, recorded))
}

/// Logs the deployment in the audit log if the database exists. Otherwise the first migration does.
async fn log(config: &ResolvedConfig, clock: &Arc<dyn Clock>) -> Result<(), StartError> {
    let path = config.database_url.expose_secret().strip_prefix("sqlite:").map(Path::new);
    if path.is_some_and(|path| !path.exists()) {
        return Ok(());
    }
    // Without a database, the first migration logs the deployment.
    let Ok(store) = database::open(config).await else { return Ok(()) };
    if store.schema().await? == Schema::Current {
        crate::migrate::log_deployment(&store, clock, &config.deployment).await?;
    }
    store.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use app::entropy::SeededEntropy;
    use clap::{FromArgMatches, Parser};

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        deploy: DeployArgs,
    }

    fn parse(args: &[&str]) -> DeployArgs {
        let matches = <Command as clap::CommandFactory>::command()
            .get_matches_from(std::iter::once(&"deploy").chain(args));
        Command::from_arg_matches(&matches).unwrap().deploy
    }

    fn address(byte: u8) -> String {
        Address::repeat_byte(byte).to_string()
    }

    fn of_live(owner: u8, resolver: u8, delay: &str) -> Result<DeploySettings, String> {
        let [owner, resolver, guardian, treasury, usdc] = [owner, resolver, 3, 4, 5].map(address);
        let args = [
            ["--owner", &owner],
            ["--resolver", &resolver],
            ["--guardian", &guardian],
            ["--treasury", &treasury],
            ["--usdc", &usdc],
            ["--deployer-key-file", "/dev/null"],
            ["--listing-delay-s", "60"],
            ["--veto-window-s", "86400"],
            ["--min-freeze-s", "86400"],
            ["--role-delay-s", delay],
        ];
        let deployer = Signer::random([9; 32]).unwrap();
        let secrets = Secrets::generate_without_roles(&SeededEntropy::new(1), 2);
        let args = parse(&args.concat());
        let settings =
            check_live(&args).and_then(|()| settings(&args, EnvironmentSetting::Live, &deployer, &secrets));
        settings.map_err(|error| error.to_string())
    }

    #[test]
    fn a_live_deployment_names_every_role_and_every_delay() {
        let error = check_live(&parse(&[])).unwrap_err().to_string();
        for name in [
            "--usdc",
            "--owner",
            "--resolver",
            "--guardian",
            "--treasury",
            "--deployer-key-file",
            "--listing-delay-s",
            "--veto-window-s",
            "--min-freeze-s",
            "--role-delay-s",
        ] {
            assert!(error.contains(name), "{name}: {error}");
        }
        assert!(of_live(1, 2, "0").unwrap_err().contains("a live deployment needs --role-delay-s"));
        let settings = of_live(1, 2, "172800").unwrap();
        assert_eq!((settings.owner, settings.role_delay_s), (Address::repeat_byte(1), 172_800));
        assert_eq!(settings.executors.len(), 2);
        assert!(powers(&settings).contains(&address(1)));
    }

    #[test]
    fn roles_that_watch_each_other_are_different_and_none_is_on_a_server() {
        assert!(of_live(2, 2, "60").unwrap_err().contains("three different addresses"));
        assert!(of_live(3, 2, "60").unwrap_err().contains("three different addresses"));
        let settings = of_live(1, 2, "60").unwrap();
        let executor = settings.executors[0];
        let on_a_server = DeploySettings { treasury: executor, ..settings.clone() };
        let error = check_apart(&on_a_server, Address::ZERO).unwrap_err().to_string();
        assert!(error.contains("the treasury") && error.contains("executor"), "{error}");
        assert!(check_apart(&settings, settings.owner).is_err());
    }

    #[test]
    fn development_deployments_create_keys_and_have_no_delays() {
        let secrets = Secrets::generate(&SeededEntropy::new(1), 1);
        let deployer = secrets.roles.deployer().unwrap();
        let settings = settings(&parse(&[]), EnvironmentSetting::Test, &deployer, &secrets).unwrap();
        assert_eq!(settings.owner, deployer.address());
        assert_eq!(settings.guardian, secrets.roles.guardian().unwrap().address());
        assert_eq!([settings.role_delay_s, settings.listing_delay_s, settings.veto_window_s], [0; 3]);
    }
}
