//! `foretell config check`: prints the resolved settings, and checks that the configured
//! dependencies respond.

use std::path::Path;
use std::sync::Arc;

use app::Ctx;
use app::limits::budget::{Budget, BudgetShares};
use chain::{Chain, NodeReport, NodeStatus};
use clap::{Arg, Args, Command};
use domain::rate::Scope;
use domain::time::SystemClock;
use secrecy::ExposeSecret;
use serde_json::Value;
use store::{Engine, Schema, Store};

use super::admin::{NO_CONTRACTS, NOWHERE};
use crate::config::{EnvironmentSetting, ResolvedConfig, Settings};
use crate::database;
use crate::entropy::SystemEntropy;
use crate::nats::NatsPublisher;
use crate::process_roles::{ProcessRole, SecretName};
use crate::run::{limits, over_nodes};
use crate::secrets::{RoleSecrets, Secrets};
use crate::start_checks::{self, Checked, Verdict};
use crate::start_error::StartError;
use crate::storage_files;

pub async fn run(options: &Settings, config: &ResolvedConfig) -> Result<(), StartError> {
    for (name, value) in settings(options, config) {
        println!("{name:<24} {value}");
    }
    for (name, value) in budgets(&config.budgets) {
        println!("{name:<24} {value}");
    }
    println!();
    let mut report = Report::default();
    // Run all checks, so that one run reports all problems.
    report.add("roles", check_roles(config));
    report.add("secrets", check_secrets(config));
    warn("secrets", surplus_warning(config));
    let opened = open(config).await;
    report.add("database", check_database(config, opened.store.as_ref()).await);
    if config.database_read_url.is_some() {
        report.add("replica", check_replica(config).await);
    }
    report.add("chain", check_chain(config, &opened).await);
    if config.environment == EnvironmentSetting::Live && !config.rpc_urls.is_empty() {
        report.add("deployment", check_deployment(config, &opened).await);
    }
    report.add("rate limiter", check_limits(config).await);
    if let Some(nats) = &config.nats {
        let described = NatsPublisher::new(nats.clone()).describe().await;
        warn("nats", described.as_ref().ok().and_then(|stream| stream.warning.clone()));
        let described = described.map(|stream| format!("{}: {}", nats.server_names(), stream.text));
        report.add("nats", described.map_err(|error| StartError::Other(error.to_string())));
    }
    let ctx = opened.ctx(config).await;
    for checked in start_checks::run(ctx.as_ref(), config).await {
        report.show(checked);
    }
    opened.close().await;
    report.end()
}

/// The number of checks, and of those that failed.
#[derive(Debug, Default)]
struct Report {
    checks: u32,
    failed: u32,
}

impl Report {
    fn add(&mut self, what: &str, found: Result<String, StartError>) {
        self.checks += 1;
        match found {
            Ok(found) => println!("{what:<24} ok: {found}"),
            Err(error) => {
                self.failed += 1;
                println!("{what:<24} FAILED: {error}");
            }
        }
    }

    /// Shows a check of the start. A fault fails too: the service would start, but not work.
    fn show(&mut self, Checked { what, verdict }: Checked) {
        match verdict {
            Verdict::Passed(text) => self.add(what, Ok(text)),
            Verdict::Warning(text) => warn(what, Some(text)),
            Verdict::Fault(text) | Verdict::Fatal(text) => self.add(what, Err(StartError::Other(text))),
        }
    }

    fn end(&self) -> Result<(), StartError> {
        match self.failed {
            0 => Ok(()),
            failed => Err(StartError::Other(format!("{failed} of {} checks failed", self.checks))),
        }
    }
}

/// What a service opens when it starts.
struct Opened {
    /// `None` if the database is a file that the first start creates.
    store: Option<Result<Store, StartError>>,
    /// `None` if the chain is embedded.
    chain: Option<Result<Chain, StartError>>,
}

/// Opens the database and asks the nodes, as `foretell serve` does. Changes nothing.
async fn open(config: &ResolvedConfig) -> Opened {
    let path = config.database_url.expose_secret().strip_prefix("sqlite:").map(Path::new);
    let store = match path {
        // Opening would create the file.
        Some(path) if !path.exists() => None,
        _ => Some(database::open(config).await.map_err(StartError::from)),
    };
    let chain = (!config.rpc_urls.is_empty()).then(|| over_nodes(config));
    if let Some(nodes) = chain.as_ref().and_then(|chain| chain.as_ref().ok()?.nodes()) {
        if let Some(Ok(store)) = &store
            && let Ok(Some(identity)) = app::nodes::find_identity(store).await
        {
            nodes.expect(identity);
        }
        // Nodes are unusable until they were checked once.
        nodes.check_all().await;
    }
    Opened { store, chain }
}

impl Opened {
    /// Returns a context for the checks of the start, or `None` if the database or the nodes cannot be
    /// opened, which their own checks report.
    async fn ctx(&self, config: &ResolvedConfig) -> Option<Ctx> {
        let store = self.store.as_ref()?.as_ref().ok()?;
        let chain = match &self.chain {
            Some(chain) => chain.as_ref().ok()?.clone(),
            // None of the checks asks the embedded chain.
            None => Chain::of(chain::provider(NOWHERE).ok()?, NO_CONTRACTS, 0),
        };
        let secrets = Secrets::load_for(&config.secrets_file, &config.roles).unwrap_or_default();
        let mut settings = app::Config::without_secrets(config.environment.into());
        settings.executors = crate::lanes::addresses(config, &secrets).ok()?;
        settings.webhooks.targets = config.targets().into();
        let clock = Arc::new(SystemClock::default());
        let ctx = Ctx::new(store.clone(), chain, clock, Arc::new(SystemEntropy::default()), settings);
        // Without the lanes of the database, those of the keys count, as in a first start.
        let _ = app::lanes::refresh(&ctx).await;
        Some(ctx)
    }

    async fn close(self) {
        if let Some(Ok(store)) = self.store {
            store.close().await;
        }
    }
}

/// Returns every declared setting with its value. Serialization masks secrets.
fn settings(options: &Settings, config: &ResolvedConfig) -> Vec<(String, String)> {
    let given = serde_json::to_value(options).unwrap_or_default();
    let declared = Settings::augment_args(Command::new("settings"));
    let setting = |arg: &Arg| {
        let name = arg.get_long().unwrap_or_default();
        let file = format!("{name}-file");
        let value = match &given[name] {
            Value::Null if !given[&file].is_null() => format!("read from {file}"),
            Value::Null => default_of(arg, name, config),
            value => text_of(value),
        };
        (name.to_owned(), value)
    };
    declared.get_arguments().map(setting).collect()
}

/// Returns every budget with its shares.
fn budgets(shares: &BudgetShares) -> Vec<(String, String)> {
    let share = |budget: Budget, scope: Scope| {
        let mark = if shares.is_changed(budget, scope) { " (set)" } else { "" };
        format!("{scope}={}{mark}", shares.share(budget, scope))
    };
    let line = |budget: &Budget| {
        let shares: Vec<_> = Scope::ALL.iter().map(|scope| share(*budget, *scope)).collect();
        (format!("budgets.{budget}"), shares.join(" "))
    };
    Budget::ALL.iter().map(line).collect()
}

/// Returns the default value of a setting.
fn default_of(arg: &Arg, name: &str, config: &ResolvedConfig) -> String {
    let path = match name {
        "data-dir" => Some(&config.data_dir),
        "contracts" => Some(&config.contracts),
        "secrets-file" => Some(&config.secrets_file),
        "deployment" => Some(&config.deployment),
        _ => None,
    };
    if let Some(path) = path {
        return format!("{} (default)", path.display());
    }
    // The help text is the only place that states the default, so read it from there.
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let documented = help.rsplit_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
    documented.map_or_else(|| "not set".to_owned(), |(default, _)| format!("{default} (default)"))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn warn(what: &str, warning: Option<String>) {
    if let Some(warning) = warning {
        println!("{what:<24} WARNING: {warning}");
    }
}

/// Shows the roles, and the secrets that they need.
fn check_roles(config: &ResolvedConfig) -> Result<String, StartError> {
    config.check_roles()?;
    let secrets: Vec<_> = config.roles.secrets().into_iter().map(SecretName::as_str).collect();
    let secrets = if secrets.is_empty() { "no secret".to_owned() } else { secrets.join(", ") };
    Ok(format!("{} (secrets needed: {secrets})", config.roles))
}

fn check_secrets(config: &ResolvedConfig) -> Result<String, StartError> {
    if config.rpc_urls.is_empty() && !config.secrets_file.exists() {
        return Ok("will be created at the first start".to_owned());
    }
    let secrets = Secrets::load_for(&config.secrets_file, &config.roles)?;
    let keys = secrets.executors()?.len();
    let lanes = crate::lanes::addresses(config, &secrets)?.len();
    Ok(match config.roles.has(ProcessRole::Executor) {
        true => format!("{keys} executors"),
        false => format!("no executor, {lanes} lanes in {}", config.deployment.display()),
    })
}

/// Returns a warning if the file has secrets that would be stolen together with this process's own.
fn surplus_warning(config: &ResolvedConfig) -> Option<String> {
    let surplus = Secrets::load(&config.secrets_file).ok()?.surplus(&config.roles);
    let surplus: Vec<_> = surplus.into_iter().map(SecretName::as_str).collect();
    let file = config.secrets_file.display();
    (!surplus.is_empty()).then(|| {
        format!("{file} also has {}, which these roles do not need: write the needed ones with `foretell config secrets`", surplus.join(", "))
    })
}

/// Writes the secrets that the roles need to a file of their own.
pub fn write_secrets(config: &ResolvedConfig, file: &Path) -> Result<(), StartError> {
    if file.exists() {
        return Err(StartError::Other(format!("{} exists: remove it, or give another name", file.display())));
    }
    let secrets = Secrets::load(&config.secrets_file)?;
    secrets.check(&config.roles)?;
    // The keys of the operator's roles are for the admin commands, not for a process.
    let secrets = Secrets { roles: RoleSecrets::default(), ..secrets.only_for(&config.roles) };
    secrets.save(file)?;
    let names: Vec<_> = config.roles.secrets().into_iter().map(SecretName::as_str).collect();
    println!("{}: {} for the roles {}", file.display(), names.join(", "), config.roles);
    Ok(())
}

async fn check_database(
    config: &ResolvedConfig,
    store: Option<&Result<Store, StartError>>,
) -> Result<String, StartError> {
    let is_live = config.environment == EnvironmentSetting::Live;
    if config.rpc_urls.is_empty() {
        storage_files::require_database(config)?;
    }
    let store = match store {
        None if is_live => {
            return Err(StartError::Other(
                "there is no SQLite database yet: run `foretell migrate`".to_owned(),
            ));
        }
        None => return Ok("SQLite, will be created at the first start".to_owned()),
        Some(Err(error)) => return Err(StartError::Other(error.to_string())),
        Some(Ok(store)) => store,
    };
    storage_files::check_database(store).await?;
    store.ping().await?;
    let engine = match store.engine() {
        Engine::Sqlite => "SQLite",
        Engine::Postgres => "PostgreSQL",
    };
    // Outside of `live`, a start migrates.
    if store.schema().await? == Schema::Older && !is_live {
        return Ok(format!("{engine}, the next start migrates its schema"));
    }
    database::require_current_schema(store).await?;
    Ok(engine.to_owned())
}

/// Compares the contracts with `deployment.json`, as the start of a live service does.
async fn check_deployment(config: &ResolvedConfig, opened: &Opened) -> Result<String, StartError> {
    let Some(Ok(chain)) = &opened.chain else {
        return Err(StartError::Other("not compared: see the check of the chain".to_owned()));
    };
    let secrets = Secrets::load_for(&config.secrets_file, &config.roles)?;
    crate::deployment::check_live(config, chain, &secrets).await?;
    Ok(format!("the contracts are those of {}", config.deployment.display()))
}

async fn check_replica(config: &ResolvedConfig) -> Result<String, StartError> {
    let store = database::open(config).await?;
    let missing = store.count_blocks_missing_in_replica().await;
    store.close().await;
    Ok(format!("a copy of the database, {} blocks behind", missing?))
}

async fn check_chain(config: &ResolvedConfig, opened: &Opened) -> Result<String, StartError> {
    let chain = match &opened.chain {
        None => return check_embedded(config, opened).await,
        Some(Err(error)) => return Err(StartError::Other(error.to_string())),
        Some(Ok(chain)) => chain,
    };
    let reports = chain.nodes().map(|nodes| nodes.report()).unwrap_or_default();
    for NodeReport { host, standing, head, .. } in &reports {
        match standing {
            NodeStatus::Usable => println!("node           {host}: at block {head}"),
            NodeStatus::Refused(reason) => println!("node           {host}: not used: {reason}"),
            NodeStatus::Unchecked => println!("node           {host}: does not answer"),
        }
    }
    let head = chain.head().await?;
    let usable = reports.iter().filter(|report| report.standing == NodeStatus::Usable).count();
    if usable < config.node_agreement {
        return Err(StartError::Other(format!(
            "{usable} nodes answer, but {} must agree before a trade is final",
            config.node_agreement
        )));
    }
    Ok(format!("chain {} at block {}, {usable} of {} nodes", chain.chain_id(), head.number, reports.len()))
}

/// Checks the file of the embedded chain, and that it is the chain of the database, as a start does.
async fn check_embedded(config: &ResolvedConfig, opened: &Opened) -> Result<String, StartError> {
    if let Some(running) = storage_files::check_chain(config).await? {
        running.wait().await?;
    }
    // A start migrates an older schema first, so only it can compare the two.
    if let Some(Ok(store)) = &opened.store
        && store.schema().await? == Schema::Current
    {
        storage_files::require_chain(config, store).await?;
    }
    Ok("embedded".to_owned())
}

async fn check_limits(config: &ResolvedConfig) -> Result<String, StartError> {
    let limits = limits(config)?;
    limits.ping().await.map_err(|error| StartError::Other(error.to_string()))?;
    Ok(format!("in {}", limits.storage_name()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn printed(options: &Settings) -> Vec<(String, String)> {
        settings(options, &options.clone().decide().unwrap())
    }

    fn value<'a>(settings: &'a [(String, String)], name: &str) -> &'a str {
        settings.iter().find(|(setting, _)| setting == name).map(|(_, value)| value.as_str()).unwrap()
    }

    #[test]
    fn every_declared_setting_is_printed() {
        let fields = serde_json::to_value(Settings::default()).unwrap();
        let fields: BTreeSet<_> = fields.as_object().unwrap().keys().cloned().collect();
        let printed = printed(&Settings::default());
        assert_eq!(printed.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), fields);
        assert_eq!(printed.len(), fields.len());
    }

    #[test]
    fn a_setting_shows_its_value_its_default_or_its_file() {
        let options: Settings = toml::from_str(
            "data-dir = \"/x\"\nredis-url-file = \"/dev/null\"\ntrusted-proxies = [\"10.0.0.0/8\"]\nenvironment = \"live\"",
        )
        .unwrap();
        let printed = printed(&options);
        for (name, expected) in [
            ("data-dir", "/x"),
            ("contracts", "/x/contracts.json (default)"),
            ("database-url", "SQLite in the data folder (default)"),
            ("redis-url", "read from redis-url-file"),
            ("redis-url-file", "/dev/null"),
            ("trusted-proxies", "10.0.0.0/8"),
            ("environment", "live"),
            ("listen", "127.0.0.1:8080 (default)"),
            ("database-url-file", "not set"),
        ] {
            assert!(value(&printed, name).starts_with(expected), "{name}: {}", value(&printed, name));
        }
    }

    #[test]
    fn every_budget_is_printed_with_its_shares() {
        let options: Settings = toml::from_str("[budgets.feed]\naddress = 20\nsite = \"off\"").unwrap();
        let printed = budgets(&options.decide().unwrap().budgets);
        assert_eq!(printed.len(), Budget::ALL.len());
        let feed = "user=5 address=20 (set) network=200 site=off (set) total=1000";
        assert_eq!(value(&printed, "budgets.feed"), feed);
    }

    #[test]
    fn secrets_are_masked() {
        let options = Settings {
            database_url: Some("postgres://ada:hunter2@db.internal:5433/foretell?x=hunter2".into()),
            redis_url: Some("redis://:hunter2@cache.internal".into()),
            rpc_url: Some(vec!["https://rpc.example/hunter2".into()]),
            ..Settings::default()
        };
        let printed = printed(&options);
        assert!(printed.iter().all(|(_, value)| !value.contains("hunter2")), "{printed:?}");
        assert_eq!(value(&printed, "database-url"), "postgres://db.internal:5433/…");
        assert_eq!(value(&printed, "rpc-url"), "https://rpc.example/…");
        for (url, expected) in
            [("hunter2", "set, not shown"), ("sqlite:/data/foretell.db", "sqlite:/data/foretell.db")]
        {
            let options = Settings { database_url: Some(url.into()), ..Settings::default() };
            assert_eq!(value(&self::printed(&options), "database-url"), expected);
        }
    }
}
