//! `foretell config check`: prints the resolved settings, and checks that the configured
//! dependencies respond.

use std::path::Path;

use app::limits::budget::{Budget, BudgetShares};
use chain::{Chain, NodeReport, NodeStatus, Nodes};
use clap::{Arg, Args, Command};
use domain::rate::Scope;
use secrecy::ExposeSecret;
use serde_json::Value;
use store::Engine;

use crate::config::{ResolvedConfig, Settings};
use crate::database;
use crate::nats::{NatsPublisher, NatsSettings};
use crate::process_roles::{ProcessRole, SecretName};
use crate::run::{limits, read_contracts};
use crate::secrets::{RoleSecrets, Secrets};
use crate::start_error::StartError;

pub async fn run(options: &Settings, config: &ResolvedConfig) -> Result<(), StartError> {
    for (name, value) in settings(options, config) {
        println!("{name:<24} {value}");
    }
    for (name, value) in budgets(&config.budgets) {
        println!("{name:<24} {value}");
    }
    println!();
    let (mut failed, mut checks) = (0, 5);
    // Run all checks, so that one run reports all problems.
    failed += report("roles", check_roles(config));
    failed += report("secrets", check_secrets(config));
    warn("secrets", surplus_warning(config));
    failed += report("database", check_database(config).await);
    // An invalid URL was reported by the check itself.
    warn("database", database::transport_warning(config, &config.database_url).unwrap_or_default());
    if let Some(url) = &config.database_read_url {
        checks += 1;
        failed += report("replica", check_replica(config).await);
        warn("replica", database::transport_warning(config, url).unwrap_or_default());
    }
    failed += report("chain", check_chain(config).await);
    failed += report("rate limiter", check_limits(config).await);
    warn("rate limiter", redis_warning(config));
    if let Some(nats) = &config.nats {
        checks += 1;
        let described = NatsPublisher::new(nats.clone()).describe().await;
        warn("nats", described.as_ref().ok().and_then(|stream| stream.warning.clone()));
        let described = described.map(|stream| format!("{}: {}", nats.server_names(), stream.text));
        failed += report("nats", described.map_err(|error| StartError::Other(error.to_string())));
        warn("nats", nats_warning(nats));
    }
    match failed {
        0 => Ok(()),
        _ => Err(StartError::Other(format!("{failed} of {checks} checks failed"))),
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

fn report(what: &str, found: Result<String, StartError>) -> u32 {
    match found {
        Ok(found) => {
            println!("{what:<24} ok: {found}");
            0
        }
        Err(error) => {
            println!("{what:<24} FAILED: {error}");
            1
        }
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

async fn check_database(config: &ResolvedConfig) -> Result<String, StartError> {
    let path = config.database_url.expose_secret().strip_prefix("sqlite:").map(Path::new);
    // Opening would create the file, but a check must not change anything.
    if path.is_some_and(|path| !path.exists()) {
        return Ok("SQLite, will be created at the first start".to_owned());
    }
    let store = database::open(config).await?;
    store.ping().await?;
    let engine = match store.engine() {
        Engine::Sqlite => "SQLite",
        Engine::Postgres => "PostgreSQL",
    };
    store.close().await;
    Ok(engine.to_owned())
}

async fn check_replica(config: &ResolvedConfig) -> Result<String, StartError> {
    let store = database::open(config).await?;
    let missing = store.count_blocks_missing_in_replica().await;
    store.close().await;
    Ok(format!("a copy of the database, {} blocks behind", missing?))
}

async fn check_chain(config: &ResolvedConfig) -> Result<String, StartError> {
    if config.rpc_urls.is_empty() {
        return Ok("embedded".to_owned());
    }
    let contracts = read_contracts(&config.contracts)?;
    let nodes = Nodes::new(&config.exposed_rpc_urls(), config.node_agreement, &contracts)?;
    let chain = Chain::over(&nodes, contracts);
    // Nodes are unusable until they were checked once.
    nodes.check_all().await;
    let reports = nodes.report();
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

fn is_this_machine(url: &reqwest::Url) -> bool {
    let is_loopback =
        |host: &str| host.trim_matches(['[', ']']).parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    url.host_str().is_none_or(|host| host == "localhost" || is_loopback(host))
}

/// Returns a warning if another machine could read or change what is sent to Redis.
fn redis_warning(config: &ResolvedConfig) -> Option<String> {
    let url = reqwest::Url::parse(config.redis_url.as_ref()?.expose_secret()).ok()?;
    let is_plaintext = matches!(url.scheme(), "redis" | "valkey") && !is_this_machine(&url);
    is_plaintext.then(|| "redis: everything is sent in plaintext. Use rediss://".to_owned())
}

/// Returns a warning if another machine could read or change what is sent to NATS.
fn nats_warning(nats: &NatsSettings) -> Option<String> {
    let is_plaintext = |server: &&String| {
        let url = reqwest::Url::parse(server).ok();
        url.is_some_and(|url| url.scheme() == "nats" && !is_this_machine(&url))
    };
    nats.servers.iter().find(is_plaintext).map(|server| {
        format!("{server} may be sent everything in plaintext, unless it requires TLS. Use tls://")
    })
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
    fn connections_to_other_machines_that_are_not_verified_are_reported() {
        let warnings = |environment: &str, database: &str, redis: &str| {
            let text = format!(
                "environment = \"{environment}\"\ndatabase-url = \"{database}\"\nredis-url = \"{redis}\""
            );
            let config = toml::from_str::<Settings>(&text).unwrap().decide().unwrap();
            (database::transport_warning(&config, &config.database_url).unwrap(), redis_warning(&config))
        };
        for (environment, database, redis, are_weak) in [
            ("live", "postgres://db.internal/d", "rediss://cache.internal", false),
            ("live", "postgres://localhost/d", "redis://127.0.0.1", false),
            ("live", "sqlite:/d.db", "redis://[::1]", false),
            ("live", "postgres://db.internal/d?sslmode=require", "redis://cache.internal", true),
            ("live", "postgres://db.internal/d?sslmode=disable", "redis://10.0.0.7", true),
            ("test", "postgres://db.internal/d", "redis://cache.internal", true),
        ] {
            let (of_database, of_redis) = warnings(environment, database, redis);
            assert_eq!((of_database.is_some(), of_redis.is_some()), (are_weak, are_weak), "{database}");
        }
        let (of_database, _) = warnings("live", "postgres://db.internal/d?sslmode=require", "redis://h");
        let expected = "sslmode=require: the server's certificate is not verified. Use sslmode=verify-full";
        assert_eq!(of_database.as_deref(), Some(expected));
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
