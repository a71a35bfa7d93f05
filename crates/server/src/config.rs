//! The service's configuration: a flag, else the environment, else the file, else the default.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use domain::Usdc;
use domain::webhook::target::TargetPolicy;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};

use crate::http::ServeLimits;
use crate::rpc::RpcListen;

/// The environment that a service runs in; governs which keys belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Production: keys start with service_live_.
    Live,
    /// Staging and development: keys start with service_test_.
    Test,
}

impl From<Environment> for domain::key::Environment {
    fn from(environment: Environment) -> Self {
        match environment {
            Environment::Live => Self::Live,
            Environment::Test => Self::Test,
        }
    }
}

/// Who claims what settled positions are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redemptions {
    /// The owners, through the API.
    SelfService,
    /// The service, by itself.
    Automatic,
}

impl Redemptions {
    /// The word of the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SelfService => "self-service",
            Self::Automatic => "automatic",
        }
    }
}

impl From<Redemptions> for app::redemptions::Redemptions {
    fn from(redemptions: Redemptions) -> Self {
        match redemptions {
            Redemptions::SelfService => Self::SelfService,
            Redemptions::Automatic => Self::Automatic,
        }
    }
}

/// Where webhooks may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookTargets {
    /// https to the public internet.
    Public,
    /// Also http, and this machine and its networks: for development.
    Local,
}

impl WebhookTargets {
    /// The word of the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Local => "local",
        }
    }
}

impl From<WebhookTargets> for TargetPolicy {
    fn from(targets: WebhookTargets) -> Self {
        match targets {
            WebhookTargets::Public => Self::public(),
            WebhookTargets::Local => Self::development(),
        }
    }
}

/// What makes a block final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finality {
    /// Its depth.
    Depth,
    /// Its depth, and the chain's own `finalized` tag.
    Finalized,
}

impl Finality {
    /// The word of the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::Finalized => "finalized",
        }
    }
}

impl From<Finality> for app::finality::Finality {
    fn from(finality: Finality) -> Self {
        match finality {
            Finality::Depth => Self::Depth,
            Finality::Finalized => Self::Finalized,
        }
    }
}

/// Where the service keeps its things and what it talks to.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Settings")]
pub struct Options {
    /// Folder of the embedded parts and of the secrets [default: .foretell]
    #[arg(long, env = "FORETELL_DATA_DIR", global = true)]
    pub data_dir: Option<PathBuf>,
    /// Database: sqlite:PATH or postgres://… [default: SQLite in the data folder]
    #[arg(long, env = "FORETELL_DATABASE_URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,
    /// A file that holds the database's URL, for URLs with a password
    #[arg(long, env = "FORETELL_DATABASE_URL_FILE", global = true)]
    pub database_url_file: Option<PathBuf>,
    /// Redis or Valkey that the limits stand in, for services of several processes: redis://… [default: the process's memory]
    #[arg(long, env = "FORETELL_REDIS_URL", hide_env_values = true, global = true)]
    pub redis_url: Option<String>,
    /// A file that holds Redis's URL, for URLs with a password
    #[arg(long, env = "FORETELL_REDIS_URL_FILE", global = true)]
    pub redis_url_file: Option<PathBuf>,
    /// JSON-RPC address of a chain's node; repeat it, or join several with commas, for failover [default: the chain embedded
    /// in the service]
    #[arg(
        long,
        env = "FORETELL_RPC_URL",
        hide_env_values = true,
        value_name = "URL",
        value_delimiter = ',',
        global = true
    )]
    #[serde(deserialize_with = "one_or_several")]
    pub rpc_url: Option<Vec<String>>,
    /// A file that holds the nodes' addresses, one a line, for addresses with an access key
    #[arg(long, env = "FORETELL_RPC_URL_FILE", global = true)]
    pub rpc_url_file: Option<PathBuf>,
    /// How many nodes must have the same block before it is final [default: 1]
    #[arg(long, env = "FORETELL_NODE_AGREEMENT", value_name = "NODES", global = true)]
    pub node_agreement: Option<usize>,
    /// The contracts' addresses, as `foretell deploy` writes them [default: contracts.json in the data folder]
    #[arg(long, env = "FORETELL_CONTRACTS", global = true)]
    pub contracts: Option<PathBuf>,
    /// The service's secrets [default: secrets.json in the data folder]
    #[arg(long, env = "FORETELL_SECRETS_FILE", global = true)]
    pub secrets_file: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, env = "FORETELL_LISTEN", global = true)]
    pub listen: Option<SocketAddr>,
    /// Address of the embedded chain's JSON-RPC, or off [default: off; 127.0.0.1:8545 for `foretell dev`]
    #[arg(long, env = "FORETELL_RPC_LISTEN", value_name = "ADDRESS|off", global = true)]
    pub rpc_listen: Option<RpcListen>,
    /// HTTP connections that are open at once; further ones wait [default: 4096]
    #[arg(long, env = "FORETELL_MAX_CONNECTIONS", global = true)]
    pub max_connections: Option<usize>,
    /// HTTP connections of one address (IPv6: one /64) that are open at once; further ones are closed. Does not apply to trusted proxies [default: 512]
    #[arg(long, env = "FORETELL_MAX_CONNECTIONS_PER_ADDRESS", global = true)]
    pub max_connections_per_address: Option<usize>,
    /// Which keys belong here [default: test]
    #[arg(long, env = "FORETELL_ENVIRONMENT", global = true)]
    pub environment: Option<Environment>,
    /// Address of the published error pages [default: the service's own /docs]
    #[arg(long, env = "FORETELL_DOCS_URL", global = true)]
    pub docs_url: Option<String>,
    /// Address of the web application, which links to threads and markets lead to [default: the service's own]
    #[arg(long, env = "FORETELL_APP_URL", global = true)]
    pub app_url: Option<String>,
    /// Proxies whose Forwarded and X-Forwarded-For headers are believed: addresses or CIDR ranges
    #[arg(long, env = "FORETELL_TRUSTED_PROXIES", value_delimiter = ',', global = true)]
    pub trusted_proxies: Option<Vec<IpNet>>,
    /// Blocks, the trade's own included, that make a trade final [default: 1 embedded, by chain otherwise]
    #[arg(long, env = "FORETELL_CONFIRMATIONS", global = true)]
    pub confirmations: Option<u64>,
    /// Whether a block is final by its depth only, or also has to be marked as final by the chain [default: depth]
    #[arg(long, env = "FORETELL_FINALITY", global = true)]
    pub finality: Option<Finality>,
    /// First block whose events are read, on an empty database [default: 0]
    #[arg(long, env = "FORETELL_FIRST_BLOCK", global = true)]
    pub first_block: Option<u64>,
    /// Seconds for which a trade of high value waits for its confirmation, at most a day [default: 300]
    #[arg(long, env = "FORETELL_CONFIRMATION_WINDOW_S", global = true)]
    pub confirmation_window_s: Option<u32>,
    /// Whether owners claim their winnings through the API or the service pays them by itself [default: self-service]
    #[arg(long, env = "FORETELL_REDEMPTIONS", global = true)]
    pub redemptions: Option<Redemptions>,
    /// The least USDC that a trade moves, as a decimal text [default: 0.01]
    #[arg(long, env = "FORETELL_MIN_TRADE_USDC", global = true)]
    pub min_trade_usdc: Option<String>,
    /// The least USDC that a claim pays, as a decimal text [default: 0.01]
    #[arg(long, env = "FORETELL_MIN_CLAIM_USDC", global = true)]
    pub min_claim_usdc: Option<String>,
    /// How far the price of a trade may be worse than its quote if the request does not say, in hundredths of a percent, 0 to 10000 [default: 200]
    #[arg(long, env = "FORETELL_DEFAULT_SLIPPAGE_BPS", global = true)]
    pub default_slippage_bps: Option<u16>,
    /// The most gwei that are paid for a unit of gas, as a decimal text; 0 for no ceiling [default: by chain]
    #[arg(long, env = "FORETELL_MAX_FEE_GWEI", global = true)]
    pub max_fee_gwei: Option<String>,
    /// Whether webhooks go to the public internet by https, or also by http and into local networks [default: public; local for `foretell dev`]
    #[arg(long, env = "FORETELL_WEBHOOK_TARGETS", global = true)]
    pub webhook_targets: Option<WebhookTargets>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The configuration file is not of the documented form.
    #[error("{path} is not a configuration file: {detail}")]
    Form {
        /// The file.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// Two settings contradict each other, or one cannot be used.
    #[error("{0}")]
    Value(String),
}

/// Every setting, decided.
#[derive(Debug, Clone)]
pub struct Config {
    /// Folder of the embedded parts and of the secrets.
    pub data_dir: PathBuf,
    /// The database's URL.
    pub database_url: String,
    /// Redis's URL; the limits stand in the process's memory where absent.
    pub redis_url: Option<String>,
    /// The nodes' addresses; the embedded chain is used if there are none.
    pub rpc_urls: Vec<String>,
    /// How many nodes must have the same block before it is final.
    pub node_agreement: usize,
    /// The contracts' addresses.
    pub contracts: PathBuf,
    /// The service's secrets.
    pub secrets_file: PathBuf,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Where the embedded chain's JSON-RPC is served; by command if absent.
    pub rpc_listen: Option<RpcListen>,
    /// Bounds of the HTTP connections.
    pub connections: ServeLimits,
    /// Which keys belong here.
    pub environment: Environment,
    /// Address of the published error pages; the service's own where absent.
    pub docs_url: Option<String>,
    /// Address of the web application; the service's own where absent.
    pub app_url: Option<String>,
    /// Proxies that are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Depth of finality; by chain where absent.
    pub confirmations: Option<u64>,
    /// What else makes a block final.
    pub finality: Finality,
    /// First block that is read.
    pub first_block: u64,
    /// How long a trade of high value is held; five minutes where absent.
    pub confirmation_window_s: Option<u32>,
    /// Who claims winnings.
    pub redemptions: Redemptions,
    /// The least USDC that a trade moves.
    pub min_trade: Usdc,
    /// The least USDC that a claim pays.
    pub min_claim: Usdc,
    /// The slippage of trades whose request does not bound the price, in hundredths of a percent.
    pub default_slippage_bps: u16,
    /// The most wei that are paid for a unit of gas; by chain if absent.
    pub max_fee_per_gas: Option<u128>,
    /// Where webhooks may go; `None` where it is not said.
    pub webhook_targets: Option<WebhookTargets>,
}

impl Config {
    /// Where webhooks may go.
    pub fn targets(&self) -> WebhookTargets {
        self.webhook_targets.unwrap_or(WebhookTargets::Public)
    }
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

/// The longest confirmation window: what a trade sets aside counts for the caps of a day.
const DAY_S: u32 = 24 * 60 * 60;

impl Options {
    /// These options, with those that are absent taken from the TOML file.
    pub fn or_from_file(self, file: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = file else { return Ok(self) };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::File { path: name.clone(), source })?;
        let of_file: Self = toml::from_str(&text)
            .map_err(|error| ConfigError::Form { path: name, detail: in_plain_words(error.message()) })?;
        Ok(Self {
            data_dir: self.data_dir.or(of_file.data_dir),
            database_url: self.database_url.or(of_file.database_url),
            database_url_file: self.database_url_file.or(of_file.database_url_file),
            redis_url: self.redis_url.or(of_file.redis_url),
            redis_url_file: self.redis_url_file.or(of_file.redis_url_file),
            rpc_url: self.rpc_url.or(of_file.rpc_url),
            rpc_url_file: self.rpc_url_file.or(of_file.rpc_url_file),
            node_agreement: self.node_agreement.or(of_file.node_agreement),
            contracts: self.contracts.or(of_file.contracts),
            secrets_file: self.secrets_file.or(of_file.secrets_file),
            listen: self.listen.or(of_file.listen),
            rpc_listen: self.rpc_listen.or(of_file.rpc_listen),
            max_connections: self.max_connections.or(of_file.max_connections),
            max_connections_per_address: self
                .max_connections_per_address
                .or(of_file.max_connections_per_address),
            environment: self.environment.or(of_file.environment),
            docs_url: self.docs_url.or(of_file.docs_url),
            app_url: self.app_url.or(of_file.app_url),
            trusted_proxies: self.trusted_proxies.or(of_file.trusted_proxies),
            confirmations: self.confirmations.or(of_file.confirmations),
            finality: self.finality.or(of_file.finality),
            first_block: self.first_block.or(of_file.first_block),
            confirmation_window_s: self.confirmation_window_s.or(of_file.confirmation_window_s),
            redemptions: self.redemptions.or(of_file.redemptions),
            min_trade_usdc: self.min_trade_usdc.or(of_file.min_trade_usdc),
            min_claim_usdc: self.min_claim_usdc.or(of_file.min_claim_usdc),
            default_slippage_bps: self.default_slippage_bps.or(of_file.default_slippage_bps),
            max_fee_gwei: self.max_fee_gwei.or(of_file.max_fee_gwei),
            webhook_targets: self.webhook_targets.or(of_file.webhook_targets),
        })
    }

    /// Decides every setting.
    pub fn decide(self) -> Result<Config, ConfigError> {
        let data_dir = self.data_dir.unwrap_or_else(|| PathBuf::from(".foretell"));
        let database_url = one_url("database-url", self.database_url, self.database_url_file)?
            .unwrap_or_else(|| format!("sqlite:{}", data_dir.join("foretell.db").display()));
        let redis_url = one_url("redis-url", self.redis_url, self.redis_url_file)?;
        let rpc_urls = rpc_urls(self.rpc_url, self.rpc_url_file)?;
        let node_agreement = node_agreement(self.node_agreement, rpc_urls.len())?;
        if self.confirmations == Some(0) {
            return Err(ConfigError::Value(
                "confirmations is at least 1: the trade's own block counts".to_owned(),
            ));
        }
        if self.confirmation_window_s.is_some_and(|window_s| !(1..=DAY_S).contains(&window_s)) {
            return Err(ConfigError::Value(format!("confirmation-window-s is 1 to {DAY_S}")));
        }
        if self.default_slippage_bps.is_some_and(|bps| bps > 10_000) {
            return Err(ConfigError::Value("default-slippage-bps must be at most 10000".to_owned()));
        }
        if self.environment == Some(Environment::Live) && self.webhook_targets == Some(WebhookTargets::Local)
        {
            return Err(ConfigError::Value(
                "webhook-targets local is for the environment test alone".to_owned(),
            ));
        }
        if !rpc_urls.is_empty() && matches!(self.rpc_listen, Some(RpcListen::At(_))) {
            return Err(ConfigError::Value(
                "rpc-listen is for the embedded chain: it cannot be set together with rpc-url".to_owned(),
            ));
        }
        Ok(Config {
            connections: connections(self.max_connections, self.max_connections_per_address)?,
            rpc_listen: self.rpc_listen,
            contracts: self.contracts.unwrap_or_else(|| data_dir.join("contracts.json")),
            secrets_file: self.secrets_file.unwrap_or_else(|| data_dir.join("secrets.json")),
            data_dir,
            database_url,
            redis_url,
            rpc_urls,
            node_agreement,
            listen: self.listen.unwrap_or(DEFAULT_LISTEN),
            environment: self.environment.unwrap_or(Environment::Test),
            docs_url: self.docs_url,
            app_url: self.app_url,
            trusted_proxies: self.trusted_proxies.unwrap_or_default(),
            confirmations: self.confirmations,
            finality: self.finality.unwrap_or(Finality::Depth),
            first_block: self.first_block.unwrap_or(0),
            confirmation_window_s: self.confirmation_window_s,
            redemptions: self.redemptions.unwrap_or(Redemptions::SelfService),
            min_trade: usdc("min-trade-usdc", self.min_trade_usdc)?.unwrap_or(app::ctx::DEFAULT_MINIMUM),
            min_claim: usdc("min-claim-usdc", self.min_claim_usdc)?.unwrap_or(app::ctx::DEFAULT_MINIMUM),
            default_slippage_bps: self.default_slippage_bps.unwrap_or(app::ctx::DEFAULT_SLIPPAGE_BPS),
            max_fee_per_gas: max_fee_per_gas(self.max_fee_gwei)?,
            webhook_targets: self.webhook_targets,
        })
    }
}

/// The parser's message without the names of Rust's types.
fn in_plain_words(message: &str) -> String {
    ["u8", "u16", "u32", "u64", "i64"].into_iter().fold(message.to_owned(), |message, integer| {
        message.replace(&format!("expected {integer}"), "expected a whole number")
    })
}

/// The nodes' addresses from a setting, or from the lines of the file that another names.
fn rpc_urls(urls: Option<Vec<String>>, file: Option<PathBuf>) -> Result<Vec<String>, ConfigError> {
    let lines = match (urls, file) {
        (Some(_), Some(_)) => {
            return Err(ConfigError::Value("set rpc-url or rpc-url-file, not both".to_owned()));
        }
        (Some(urls), None) => urls,
        (None, None) => return Ok(Vec::new()),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| ConfigError::File { path: path.display().to_string(), source })?;
            text.lines().map(str::to_owned).collect()
        }
    };
    let urls: Vec<String> =
        lines.iter().map(|line| line.trim().to_owned()).filter(|url| !url.is_empty()).collect();
    if urls.is_empty() {
        return Err(ConfigError::Value("rpc-url must name at least one node".to_owned()));
    }
    Ok(urls)
}

fn node_agreement(wanted: Option<usize>, nodes: usize) -> Result<usize, ConfigError> {
    match wanted {
        None => Ok(1),
        Some(wanted) if (1..=nodes).contains(&wanted) => Ok(wanted),
        Some(_) if nodes == 0 => Err(ConfigError::Value(
            "node-agreement needs rpc-url: the embedded chain has no nodes".to_owned(),
        )),
        Some(_) => Err(ConfigError::Value(format!(
            "node-agreement must be between 1 and the number of nodes, which is {nodes}"
        ))),
    }
}

/// A text or a list of texts.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        One(String),
        Several(Vec<String>),
    }
    Ok(Some(match Value::deserialize(deserializer)? {
        Value::One(one) => vec![one],
        Value::Several(several) => several,
    }))
}

/// The amount that a setting names.
fn usdc(name: &str, text: Option<String>) -> Result<Option<Usdc>, ConfigError> {
    let parsed = text.map(|text| text.trim().parse()).transpose();
    parsed.map_err(|_| {
        ConfigError::Value(format!("{name} must be a decimal amount of USDC with at most 6 decimals"))
    })
}

/// The ceiling in wei of a decimal text in gwei; no ceiling for 0.
fn max_fee_per_gas(gwei: Option<String>) -> Result<Option<u128>, ConfigError> {
    let Some(text) = gwei else { return Ok(None) };
    let wrong = || {
        ConfigError::Value("max-fee-gwei must be a decimal number of gwei with at most 9 decimals".to_owned())
    };
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || whole.len() > 12 || decimals.len() > 9 {
        return Err(wrong());
    }
    let wei: u128 = format!("{whole}{decimals:0<9}").parse().map_err(|_| wrong())?;
    Ok(Some(if wei == 0 { u128::MAX } else { wei }))
}

fn connections(total: Option<usize>, per_address: Option<usize>) -> Result<ServeLimits, ConfigError> {
    if total == Some(0) || per_address == Some(0) {
        return Err(ConfigError::Value(
            "max-connections and max-connections-per-address must be at least 1".to_owned(),
        ));
    }
    let default = ServeLimits::default();
    Ok(ServeLimits {
        connections: total.unwrap_or(default.connections),
        connections_per_address: per_address.unwrap_or(default.connections_per_address),
        ..default
    })
}

/// The secret that stands in a setting or in the file that another names.
pub(crate) fn one_url(
    name: &str,
    url: Option<String>,
    file: Option<PathBuf>,
) -> Result<Option<String>, ConfigError> {
    match (url, file) {
        (Some(_), Some(_)) => Err(ConfigError::Value(format!("set {name} or {name}-file, not both"))),
        (url, None) => Ok(url),
        (None, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(source) => Err(ConfigError::File { path: path.display().to_string(), source }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_the_file() {
        let folder = std::env::temp_dir().join(format!("foretell-config-{}", std::process::id()));
        std::fs::write(&folder, "listen = \"127.0.0.1:1\"\nconfirmations = 3\n").unwrap();
        let flags = Options { listen: Some("127.0.0.1:2".parse().unwrap()), ..Options::default() };
        let config = flags.or_from_file(Some(&folder)).unwrap().decide().unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(config.listen.port(), 2);
        assert_eq!(config.confirmations, Some(3));
    }

    #[test]
    fn a_confirmation_window_is_a_second_to_a_day() {
        let window = |seconds| {
            let options = Options { confirmation_window_s: Some(seconds), ..Options::default() };
            options.decide().map(|config| config.confirmation_window_s).ok().flatten()
        };
        assert_eq!((window(1), window(DAY_S)), (Some(1), Some(DAY_S)));
        assert_eq!((window(0), window(DAY_S + 1)), (None, None));
    }

    #[test]
    fn a_wrong_setting_is_reported_without_rusts_types() {
        let error = toml::from_str::<Options>("confirmations = \"three\"").unwrap_err();
        let message = in_plain_words(error.message());
        assert!(message.contains("expected a whole number") && !message.contains("u64"), "{message}");
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        assert!(toml::from_str::<Options>("lisen = \"127.0.0.1:1\"").is_err());
    }

    #[test]
    fn owners_claim_their_winnings_unless_the_file_says_otherwise() {
        assert_eq!(Options::default().decide().unwrap().redemptions, Redemptions::SelfService);
        for word in [Redemptions::SelfService, Redemptions::Automatic] {
            let options: Options = toml::from_str(&format!("redemptions = \"{}\"", word.as_str())).unwrap();
            assert_eq!(options.decide().unwrap().redemptions, word);
        }
        assert!(toml::from_str::<Options>("redemptions = \"manual\"").is_err());
        assert_eq!(Options::default().decide().unwrap().targets(), WebhookTargets::Public);
        for word in [WebhookTargets::Public, WebhookTargets::Local] {
            let options: Options =
                toml::from_str(&format!("webhook-targets = \"{}\"", word.as_str())).unwrap();
            assert_eq!(options.decide().unwrap().targets(), word);
        }
    }

    #[test]
    fn webhooks_stay_out_of_local_networks_in_live() {
        let with = |environment| Options {
            environment: Some(environment),
            webhook_targets: Some(WebhookTargets::Local),
            ..Options::default()
        };
        assert!(with(Environment::Test).decide().is_ok());
        assert!(with(Environment::Live).decide().is_err());
    }

    #[test]
    fn nodes_come_from_flags_from_the_file_or_from_a_file_of_their_own() {
        let of_toml = |text| toml::from_str::<Options>(text).unwrap().decide().map(|config| config.rpc_urls);
        assert_eq!(of_toml("rpc-url = \"http://a\"").unwrap(), ["http://a"]);
        assert_eq!(of_toml("rpc-url = [\"http://a\", \"http://b\"]").unwrap(), ["http://a", "http://b"]);
        assert_eq!(Options::default().decide().unwrap().rpc_urls, [""; 0]);
        let path = std::env::temp_dir().join(format!("foretell-rpc-urls-{}", std::process::id()));
        std::fs::write(&path, "https://node.example/key\n\nhttps://other.example\n").unwrap();
        let from_file = Options { rpc_url_file: Some(path.clone()), ..Options::default() };
        let both = Options { rpc_url: Some(vec!["http://a".into()]), ..from_file.clone() };
        let config = from_file.decide().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(config.rpc_urls, ["https://node.example/key", "https://other.example"]);
        assert_eq!(both.decide().unwrap_err().to_string(), "set rpc-url or rpc-url-file, not both");
    }

    #[test]
    fn node_agreement_is_at_most_the_number_of_nodes() {
        let with = |nodes: usize, agreement| {
            let urls = (nodes > 0).then(|| vec!["http://a".to_owned(); nodes]);
            let options = Options { rpc_url: urls, node_agreement: agreement, ..Options::default() };
            options.decide().map(|config| config.node_agreement).ok()
        };
        assert_eq!((with(0, None), with(3, None), with(3, Some(3))), (Some(1), Some(1), Some(3)));
        assert_eq!((with(0, Some(1)), with(3, Some(4)), with(3, Some(0))), (None, None, None));
    }

    #[test]
    fn amounts_and_slippage_have_defaults_and_bounds() {
        let config = Options::default().decide().unwrap();
        let cent = Usdc::from_atomic(10_000);
        assert_eq!((config.min_trade, config.min_claim, config.default_slippage_bps), (cent, cent, 200));
        let file = "min-trade-usdc = \"0\"\nmin-claim-usdc = \"1.5\"\ndefault-slippage-bps = 10000";
        let config = toml::from_str::<Options>(file).unwrap().decide().unwrap();
        assert_eq!((config.min_trade, config.min_claim), (Usdc::ZERO, Usdc::from_atomic(1_500_000)));
        for wrong in ["min-trade-usdc = \"-1\"", "min-claim-usdc = \"1e3\"", "default-slippage-bps = 10001"] {
            assert!(toml::from_str::<Options>(wrong).unwrap().decide().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_fee_ceiling_is_in_gwei_and_0_is_none() {
        let ceiling = |text: &str| {
            let options = Options { max_fee_gwei: Some(text.to_owned()), ..Options::default() };
            options.decide().map(|config| config.max_fee_per_gas).ok()
        };
        assert_eq!(Options::default().decide().unwrap().max_fee_per_gas, None);
        assert_eq!(ceiling("30"), Some(Some(30_000_000_000)));
        assert_eq!(ceiling("0.000000001"), Some(Some(1)));
        assert_eq!([ceiling("0"), ceiling("0.0")], [Some(Some(u128::MAX)); 2]);
        for wrong in ["", "-1", "1.", ".5", "1e3", "0.0000000001", "1 gwei"] {
            assert_eq!(ceiling(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_embedded_chains_json_rpc_is_off_unless_an_address_is_set() {
        let decide = |text: &str| toml::from_str::<Options>(text).unwrap().decide();
        assert_eq!(decide("").unwrap().rpc_listen, None);
        assert_eq!(decide("rpc-listen = \"off\"").unwrap().rpc_listen, Some(RpcListen::Off));
        let address = RpcListen::At("127.0.0.1:8545".parse().unwrap());
        assert_eq!(decide("rpc-listen = \"127.0.0.1:8545\"").unwrap().rpc_listen, Some(address));
        assert!(decide("rpc-listen = \"127.0.0.1:8545\"\nrpc-url = \"http://node\"").is_err());
        assert!(toml::from_str::<Options>("rpc-listen = \"on\"").is_err());
    }

    #[test]
    fn the_limits_of_connections_are_at_least_one() {
        let decide = |text: &str| toml::from_str::<Options>(text).unwrap().decide().map(|it| it.connections);
        let limits = decide("max-connections = 9\nmax-connections-per-address = 3").unwrap();
        assert_eq!((limits.connections, limits.connections_per_address), (9, 3));
        assert!(decide("max-connections = 0").is_err() && decide("max-connections-per-address = 0").is_err());
    }

    #[test]
    fn two_database_urls_are_refused() {
        let both = Options {
            database_url: Some("sqlite:a".into()),
            database_url_file: Some("b".into()),
            ..Options::default()
        };
        assert!(matches!(both.decide(), Err(ConfigError::Value(_))));
    }

    #[test]
    fn rediss_url_comes_from_a_flag_or_from_a_file() {
        let path = std::env::temp_dir().join(format!("foretell-redis-url-{}", std::process::id()));
        std::fs::write(&path, "redis://:secret@redis.internal\n").unwrap();
        let from_file = Options { redis_url_file: Some(path.clone()), ..Options::default() };
        let both = Options { redis_url: Some("redis://a".into()), ..from_file.clone() };
        let config = from_file.decide().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(config.redis_url.as_deref(), Some("redis://:secret@redis.internal"));
        let refused = both.decide().unwrap_err().to_string();
        assert_eq!(refused, "set redis-url or redis-url-file, not both");
        assert_eq!(Options::default().decide().unwrap().redis_url, None);
    }
}
