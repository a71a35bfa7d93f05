//! The service's configuration. For each setting a flag wins over the environment, the environment
//! over the TOML file, and the file over the default.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use app::config::{CountryRule, OwnerActLimits, SampleUser, WebSettings};
use app::limits::budget::{Budget, BudgetSetting, BudgetShares, Share};
use axum::http::uri::Authority;
use axum::http::{HeaderName, Uri};
use clap::{Args, ValueEnum};
use domain::Usdc;
use domain::passkey::{RelyingParty, RelyingPartyError};
use domain::rate::Scope;
use domain::webhook::target::TargetPolicy;
use http_kit::{ConnectionLimits, McpSettings, ServeLimits};
use ipnet::IpNet;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::nats::{GivenNatsSettings, NatsSettings, NatsSettingsError};
use crate::optional_listen::OptionalListen;
use crate::process_roles::{ProcessRole, ProcessRoles};
use crate::traces::OtlpEndpoint;

/// The environment of a service, which determines the keys that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentSetting {
    /// Production: keys start with service_live_.
    Live,
    /// Staging and development: keys start with service_test_.
    Test,
}

impl From<EnvironmentSetting> for domain::key::Environment {
    fn from(environment: EnvironmentSetting) -> Self {
        match environment {
            EnvironmentSetting::Live => Self::Live,
            EnvironmentSetting::Test => Self::Test,
        }
    }
}

/// The way settled positions are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RedemptionsSetting {
    /// Owners claim through the API.
    SelfService,
    /// The service pays automatically.
    Automatic,
}

impl RedemptionsSetting {
    /// Returns the value as the configuration spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SelfService => "self-service",
            Self::Automatic => "automatic",
        }
    }
}

impl From<RedemptionsSetting> for app::config::Redemptions {
    fn from(redemptions: RedemptionsSetting) -> Self {
        match redemptions {
            RedemptionsSetting::SelfService => Self::SelfService,
            RedemptionsSetting::Automatic => Self::Automatic,
        }
    }
}

/// The allowed targets of webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookTargets {
    /// https to the public internet.
    Public,
    /// Also http, this machine and its networks. For development.
    Local,
}

impl WebhookTargets {
    /// Returns the value as the configuration spells it.
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

/// The condition for a final block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalitySetting {
    /// Its depth.
    Depth,
    /// Its depth, and the chain's own `finalized` tag.
    Finalized,
}

impl FinalitySetting {
    /// Returns the value as the configuration spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::Finalized => "finalized",
        }
    }
}

impl From<FinalitySetting> for app::config::Finality {
    fn from(finality: FinalitySetting) -> Self {
        match finality {
            FinalitySetting::Depth => Self::Depth,
            FinalitySetting::Finalized => Self::Finalized,
        }
    }
}

/// A part of the service that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    On,
    Off,
}

/// The settings of the service. URLs that may contain a password or an access key are serialized
/// without it.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Settings")]
pub struct Settings {
    /// Folder of the embedded database, the embedded chain and the secrets [default: .foretell]
    #[arg(long, env = "FORETELL_DATA_DIR", global = true)]
    pub data_dir: Option<PathBuf>,
    /// Database: sqlite:PATH or postgres://… [default: SQLite in the data folder]
    #[arg(long, env = "FORETELL_DATABASE_URL", hide_env_values = true, global = true)]
    #[serde(serialize_with = "mask_url")]
    pub database_url: Option<SecretString>,
    /// A file that contains the database URL, for URLs with a password
    #[arg(long, env = "FORETELL_DATABASE_URL_FILE", global = true)]
    pub database_url_file: Option<PathBuf>,
    /// A replica of a PostgreSQL database, for public reads: postgres://… [default: none]
    #[arg(long, env = "FORETELL_DATABASE_READ_URL", hide_env_values = true, global = true)]
    #[serde(serialize_with = "mask_url")]
    pub database_read_url: Option<SecretString>,
    /// A file that contains the replica's URL, for URLs with a password
    #[arg(long, env = "FORETELL_DATABASE_READ_URL_FILE", global = true)]
    pub database_read_url_file: Option<PathBuf>,
    /// Redis or Valkey for the rate limits of several processes: redis://… [default: the process's
    /// memory]
    #[arg(long, env = "FORETELL_REDIS_URL", hide_env_values = true, global = true)]
    #[serde(serialize_with = "mask_url")]
    pub redis_url: Option<SecretString>,
    /// A file that contains the Redis URL, for URLs with a password
    #[arg(long, env = "FORETELL_REDIS_URL_FILE", global = true)]
    pub redis_url_file: Option<PathBuf>,
    /// JSON-RPC URL of a node of the chain. Repeat it, or separate several by commas, for failover
    /// [default: the embedded chain]
    #[arg(
        long,
        env = "FORETELL_RPC_URL",
        hide_env_values = true,
        value_name = "URL",
        value_delimiter = ',',
        global = true
    )]
    #[serde(deserialize_with = "one_or_several", serialize_with = "mask_urls")]
    pub rpc_url: Option<Vec<SecretString>>,
    /// A file that contains the URLs of the nodes, one per line, for URLs with an access key
    #[arg(long, env = "FORETELL_RPC_URL_FILE", global = true)]
    pub rpc_url_file: Option<PathBuf>,
    /// The number of nodes that must have the same block before it is final [default: 1]
    #[arg(long, env = "FORETELL_NODE_AGREEMENT", value_name = "NODES", global = true)]
    pub node_agreement: Option<usize>,
    /// The file with the contracts' addresses that `foretell deploy` writes [default:
    /// contracts.json in the data folder]
    #[arg(long, env = "FORETELL_CONTRACTS", global = true)]
    pub contracts: Option<PathBuf>,
    /// The file with the service's secrets [default: secrets.json in the data folder]
    #[arg(long, env = "FORETELL_SECRETS_FILE", global = true)]
    pub secrets_file: Option<PathBuf>,
    /// The record of the contracts' deployment that `foretell deploy` writes [default:
    /// deployment.json in the data folder]
    #[arg(long, env = "FORETELL_DEPLOYMENT", value_name = "FILE", global = true)]
    pub deployment: Option<PathBuf>,
    /// The parts of the service that `foretell serve` runs in this process, separated by commas. A
    /// process needs only the secrets of its roles [default: all]
    #[arg(long, env = "FORETELL_ROLES", value_name = "ROLES", value_delimiter = ',', global = true)]
    pub roles: Option<Vec<ProcessRole>>,
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, env = "FORETELL_LISTEN", global = true)]
    pub listen: Option<SocketAddr>,
    /// Address of the embedded chain's JSON-RPC, or off [default: off; 127.0.0.1:8545 for `foretell dev`]
    #[arg(long, env = "FORETELL_RPC_LISTEN", value_name = "ADDRESS|off", global = true)]
    pub rpc_listen: Option<OptionalListen>,
    /// Address of the operator's listener (metrics, readiness of this process, drain, log level), or
    /// off. Never publish it [default: 127.0.0.1:9464, or another port if listen has port 0; off for
    /// `foretell dev`]
    #[arg(long, env = "FORETELL_OPS_LISTEN", value_name = "ADDRESS|off", global = true)]
    pub ops_listen: Option<OptionalListen>,
    /// Further names of the operator's listener and of the chain's JSON-RPC. Requests with other names in
    /// their Host header are rejected [default: addresses, names without a dot, the name of this machine, and
    /// names inside a Kubernetes cluster]
    #[arg(long, env = "FORETELL_PRIVATE_HOSTS", value_name = "NAMES", value_delimiter = ',', global = true)]
    pub private_hosts: Option<Vec<String>>,
    /// Seconds for which the process goes on serving after SIGTERM, unready, so that load balancers
    /// remove it first, at most 300 [default: 5 in the environment live, else 0]
    #[arg(long, env = "FORETELL_SHUTDOWN_DELAY_S", value_name = "SECONDS", global = true)]
    pub shutdown_delay_s: Option<u16>,
    /// What is logged: error, warn, info, debug or trace, or directives such as
    /// info,app::trades=debug. RUST_LOG wins over it [default: info; warn for `foretell dev`]
    #[arg(long, env = "FORETELL_LOG_LEVEL", value_name = "LEVEL", global = true)]
    pub log_level: Option<String>,
    /// URL of an OpenTelemetry collector that receives traces by OTLP over HTTP, such as
    /// http://127.0.0.1:4318 [default: none]
    #[arg(long, env = "FORETELL_OTLP_ENDPOINT", value_name = "URL", global = true)]
    pub otlp_endpoint: Option<String>,
    /// The maximum number of open HTTP connections. Idle ones give way to further ones, which wait if all
    /// are busy [default: 4096]
    #[arg(long, env = "FORETELL_MAX_CONNECTIONS", global = true)]
    pub max_connections: Option<usize>,
    /// The maximum number of open HTTP connections per address (IPv6: per /64). Idle ones give way to
    /// further ones, which are closed if all are busy. Does not apply to trusted proxies [default: 512]
    #[arg(long, env = "FORETELL_MAX_CONNECTIONS_PER_ADDRESS", global = true)]
    pub max_connections_per_address: Option<usize>,
    /// The environment of the service, which determines the keys that it accepts [default: test]
    #[arg(long, env = "FORETELL_ENVIRONMENT", global = true)]
    pub environment: Option<EnvironmentSetting>,
    /// URL of the published error pages [default: the service's own /docs]
    #[arg(long, env = "FORETELL_DOCS_URL", global = true)]
    pub docs_url: Option<String>,
    /// URL of the web application, for links to threads and markets [default: the service's own]
    #[arg(long, env = "FORETELL_APP_URL", global = true)]
    pub app_url: Option<String>,
    /// Proxies whose Forwarded and X-Forwarded-For headers are trusted: addresses or CIDR ranges
    #[arg(long, env = "FORETELL_TRUSTED_PROXIES", value_delimiter = ',', global = true)]
    pub trusted_proxies: Option<Vec<IpNet>>,
    /// The number of blocks, including the trade's own, that make a trade final [default: 1 for the
    /// embedded chain, else by chain]
    #[arg(long, env = "FORETELL_CONFIRMATIONS", global = true)]
    pub confirmations: Option<u64>,
    /// The condition for a final block: its depth, or also the chain's own finality
    /// [default: depth]
    #[arg(long, env = "FORETELL_FINALITY", global = true)]
    pub finality: Option<FinalitySetting>,
    /// The first block whose events are read into an empty database [default: 0]
    #[arg(long, env = "FORETELL_FIRST_BLOCK", global = true)]
    pub first_block: Option<u64>,
    /// Seconds for which a high-value trade waits for its confirmation, at most 86400 [default:
    /// 300]
    #[arg(long, env = "FORETELL_CONFIRMATION_WINDOW_S", global = true)]
    pub confirmation_window_s: Option<u32>,
    /// The payment of winnings: claimed by owners through the API, or automatic
    /// [default: self-service]
    #[arg(long, env = "FORETELL_REDEMPTIONS", global = true)]
    pub redemptions: Option<RedemptionsSetting>,
    /// The minimum USDC of a buy, and of a sale that leaves tokens, as a decimal number [default: 0.01]
    #[arg(long, env = "FORETELL_MIN_TRADE_USDC", global = true)]
    pub min_trade_usdc: Option<String>,
    /// The minimum USDC that automatic payment pays unasked, as a decimal number. Holders claim less
    /// [default: 0.01]
    #[arg(long, env = "FORETELL_MIN_CLAIM_USDC", global = true)]
    pub min_claim_usdc: Option<String>,
    /// The maximum slippage of a trade from its quote if the request sets no bound, in hundredths of
    /// a percent, 0 to 10000 [default: 200]
    #[arg(long, env = "FORETELL_DEFAULT_SLIPPAGE_BPS", global = true)]
    pub default_slippage_bps: Option<u16>,
    /// The maximum gwei per unit of gas, as a decimal number. 0 for no maximum [default: by chain]
    #[arg(long, env = "FORETELL_MAX_FEE_GWEI", global = true)]
    pub max_fee_gwei: Option<String>,
    /// File with the private key that sends native currency to executors that are low on gas. It
    /// requires gas-treasury-daily-wei [default: none]
    #[arg(long, env = "FORETELL_GAS_TREASURY", global = true, value_name = "KEYFILE")]
    pub gas_treasury: Option<PathBuf>,
    /// The maximum wei that the gas treasury spends within 24 hours
    #[arg(long, env = "FORETELL_GAS_TREASURY_DAILY_WEI", global = true, value_name = "WEI")]
    pub gas_treasury_daily_wei: Option<String>,
    /// The maximum number of acts of one user that owners sign within 24 hours [default: 20]
    #[arg(long, env = "FORETELL_MAX_ACTS_PER_DAY", global = true)]
    pub max_acts_per_day: Option<u32>,
    /// The USDC that an account must hold, and must have received from outside of this service, before
    /// the service pays the gas of its acts, as a decimal number [default: 1 in the environment live,
    /// else 0]
    #[arg(long, env = "FORETELL_MIN_ACT_BALANCE_USDC", global = true)]
    pub min_act_balance_usdc: Option<String>,
    /// The targets of webhooks: the public internet by https, or also http and local networks
    /// [default: public; local for `foretell dev`]
    #[arg(long, env = "FORETELL_WEBHOOK_TARGETS", global = true)]
    pub webhook_targets: Option<WebhookTargets>,
    /// NATS server that gets all events, in JetStream: nats://… or tls://…. Repeat it, or separate
    /// several of a cluster by commas [default: none]
    #[arg(
        long,
        env = "FORETELL_NATS_URL",
        hide_env_values = true,
        value_name = "URL",
        value_delimiter = ',',
        global = true
    )]
    #[serde(deserialize_with = "one_or_several", serialize_with = "mask_urls")]
    pub nats_url: Option<Vec<SecretString>>,
    /// A file that contains the URLs of the NATS servers, one per line, for URLs with a password
    #[arg(long, env = "FORETELL_NATS_URL_FILE", global = true)]
    pub nats_url_file: Option<PathBuf>,
    /// A file with the credentials of a NATS user (.creds) [default: none]
    #[arg(long, env = "FORETELL_NATS_CREDENTIALS", value_name = "FILE", global = true)]
    pub nats_credentials: Option<PathBuf>,
    /// A file with the certificate authorities of the NATS servers, in PEM. It requires TLS [default:
    /// those of this machine]
    #[arg(long, env = "FORETELL_NATS_CA", value_name = "FILE", global = true)]
    pub nats_ca: Option<PathBuf>,
    /// The stream in JetStream that gets the events. It is created if it does not exist [default:
    /// FORETELL_EVENTS]
    #[arg(long, env = "FORETELL_NATS_STREAM", value_name = "NAME", global = true)]
    pub nats_stream: Option<String>,
    /// The beginning of the events' subjects, before the user's id [default: foretell.events]
    #[arg(long, env = "FORETELL_NATS_SUBJECT", value_name = "SUBJECT", global = true)]
    pub nats_subject: Option<String>,
    /// Accounts in the web application: signing up, signing in and trading. Its reading pages are
    /// always served. It requires app-url [default: off; on for `foretell dev`]
    #[arg(long, env = "FORETELL_WEB", global = true)]
    pub web: Option<Switch>,
    /// Maximum number of browsers that one process updates live [default: 10000]
    #[arg(long, env = "FORETELL_MAX_STREAMS", global = true)]
    pub max_streams: Option<usize>,
    /// A share of a budget of strangers, such as streams.address=20 or feed.total=off: the budgets and
    /// their defaults are in the operator's guide. Repeat it, or separate several by commas. In the
    /// file it is a table, [budgets.streams] with address = 20 [default: the table of the guide]
    #[arg(
        long,
        env = "FORETELL_BUDGET",
        value_name = "BUDGET.SHARE=LIMIT",
        value_delimiter = ',',
        global = true
    )]
    #[serde(
        rename(deserialize = "budgets"),
        deserialize_with = "budget_tables",
        serialize_with = "budget_texts"
    )]
    pub budget: Option<Vec<BudgetSetting>>,
    /// The operator's pages of the web application [default: off; on for `foretell dev`]
    #[arg(long, env = "FORETELL_WEB_ADMIN", global = true)]
    pub web_admin: Option<Switch>,
    /// Tools for agents at /mcp (Model Context Protocol), for holders of API keys [default: off; on for
    /// `foretell dev`]
    #[arg(long, env = "FORETELL_MCP", global = true)]
    pub mcp: Option<Switch>,
    /// Agents may trade and claim, if their key has the scope trades:write. It switches mcp on [default:
    /// off]
    #[arg(
        long,
        env = "FORETELL_MCP_TRADING",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "on",
        global = true
    )]
    pub mcp_trading: Option<Switch>,
    /// Further names under which agents reach the service. Requests with other names in their Host or
    /// Origin header are rejected [default: the host of app-url, and this machine]
    #[arg(long, env = "FORETELL_MCP_HOSTS", value_name = "NAMES", value_delimiter = ',', global = true)]
    pub mcp_hosts: Option<Vec<String>>,
    /// Clients provoke outcomes of trades by name, to test how they handle them. Not available in the
    /// environment live [default: off; on for `foretell dev`]
    #[arg(long, env = "FORETELL_SANDBOX", global = true)]
    pub sandbox: Option<Switch>,
    /// The domain that passkeys are bound to: the host of app-url, or a parent domain of it. It
    /// cannot change after the first passkey [default: the host of app-url]
    #[arg(long, env = "FORETELL_RP_ID", value_name = "DOMAIN", global = true)]
    pub rp_id: Option<String>,
    /// URL of the terms of use. Whoever signs up in the web application must accept them [default:
    /// none]
    #[arg(long, env = "FORETELL_TERMS_URL", global = true)]
    pub terms_url: Option<String>,
    /// The header in which your proxy names the country of a request. The proxy must replace what a
    /// client sends in it
    #[arg(long, env = "FORETELL_COUNTRY_HEADER", value_name = "NAME", global = true)]
    pub country_header: Option<String>,
    /// Countries from which nobody may sign up or buy in the web application: codes of two letters,
    /// XX for requests without the header. It requires country-header
    #[arg(
        long,
        env = "FORETELL_REFUSED_COUNTRIES",
        value_name = "CODES",
        value_delimiter = ',',
        global = true
    )]
    pub refused_countries: Option<Vec<String>>,
}

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
    /// The configuration file does not have the documented form.
    #[error("{path} is not a configuration file: {detail}")]
    Form { path: String, detail: String },
    /// A setting is invalid or contradicts another one.
    #[error("{0}")]
    Value(String),
}

/// The resolved configuration: every setting has its final value.
#[derive(Debug, Clone)]
pub struct ResolvedConfig {
    /// Directory of the embedded parts and of the secrets.
    pub data_dir: PathBuf,
    pub database_url: SecretString,
    /// URL of a replica of the database. If absent, the primary serves all reads.
    pub database_read_url: Option<SecretString>,
    /// Redis URL. If absent, rate limits are held in this process's memory.
    pub redis_url: Option<SecretString>,
    /// JSON-RPC URLs of the nodes. If empty, the embedded chain is used.
    pub rpc_urls: Vec<SecretString>,
    /// Number of nodes that must report the same block before it is final.
    pub node_agreement: usize,
    /// Path of the file with the contract addresses.
    pub contracts: PathBuf,
    /// Path of the secrets file.
    pub secrets_file: PathBuf,
    /// Path of the record of the deployment.
    pub deployment: PathBuf,
    /// The parts of the service that this process runs.
    pub roles: ProcessRoles,
    pub listen: SocketAddr,
    /// Address of the embedded chain's JSON-RPC. If absent, the default depends on the command.
    pub rpc_listen: Option<OptionalListen>,
    /// Address of the operator's listener. If absent, the default depends on the command.
    pub ops_listen: Option<OptionalListen>,
    pub private_hosts: Vec<String>,
    /// Time for which the process goes on serving after it was told to stop.
    pub shutdown_delay: Duration,
    /// If absent, the default depends on the command.
    pub log_level: Option<String>,
    /// The collector of traces. If absent, nothing is traced.
    pub otlp_endpoint: Option<OtlpEndpoint>,
    pub connections: ServeLimits,
    /// Environment of the API keys that this service accepts.
    pub environment: EnvironmentSetting,
    /// Base URL of the published error pages. If absent, the service serves them itself.
    pub docs_url: Option<String>,
    /// Base URL of the web application. If absent, the service's own URL.
    pub app_url: Option<String>,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Number of blocks that make a block final. If absent, the default depends on the chain.
    pub confirmations: Option<u64>,
    /// The finality rule: depth only, or also the chain's `finalized` tag.
    pub finality: FinalitySetting,
    /// First block whose events are read, if the database is empty.
    pub first_block: u64,
    /// Seconds for which a trade of high value waits for its confirmation. If absent, 300.
    pub confirmation_window_s: Option<u32>,
    /// The party that claims payouts: the owners or the service.
    pub redemptions: RedemptionsSetting,
    /// The least USDC that a buy, or a sale that leaves tokens, moves.
    pub min_trade: Usdc,
    /// The least USDC that the service pays out by itself. Claims have no minimum.
    pub min_claim: Usdc,
    /// Slippage for trades whose request sets no price bound, in hundredths of a percent.
    pub default_slippage_bps: u16,
    /// Maximum fee per unit of gas, in wei. If absent, the default depends on the chain.
    pub max_fee_per_gas: Option<u128>,
    /// The key file of the gas treasury, and its daily cap in wei.
    pub gas_treasury: Option<(PathBuf, u128)>,
    /// Limits of the acts that the service pays for.
    pub owner_acts: OwnerActLimits,
    /// Allowed webhook targets. `None` if not configured, so that each command can choose its
    /// default.
    pub webhook_targets: Option<WebhookTargets>,
    /// The stream in NATS that gets all events, if any.
    pub nats: Option<NatsSettings>,
    /// `None` if not configured, so that each command can choose its default.
    pub web: Option<Switch>,
    /// `None` if not configured, so that each command can choose its default.
    pub web_admin: Option<Switch>,
    /// `None` if not configured, so that each command can choose its default.
    pub mcp: Option<Switch>,
    pub mcp_trading: bool,
    pub mcp_hosts: Vec<String>,
    /// `None` if not configured, so that each command can choose its default. Never on in the
    /// environment live.
    pub sandbox: Option<Switch>,
    /// Relying-party id. If absent, the host of the web application.
    pub rp_id: Option<String>,
    pub terms_url: Option<String>,
    pub country_rule: Option<CountryRule>,
    /// URL of the web application if `app_url` is absent. Only `foretell dev` has one.
    pub local_url: Option<String>,
    /// The sample users of the demonstration.
    pub sample_users: Vec<SampleUser>,
    /// The shares of resources that strangers may use.
    pub budgets: BudgetShares,
}

impl ResolvedConfig {
    /// Returns the settings of the web application, or `None` if it is off.
    ///
    /// # Errors
    /// If passkeys would not work at its URL.
    pub fn web_settings(&self) -> Result<Option<WebSettings>, ConfigError> {
        if self.web != Some(Switch::On) {
            return Ok(None);
        }
        let Some(url) = self.app_url.as_ref().or(self.local_url.as_ref()) else {
            return Err(ConfigError::Value("web requires app-url".to_owned()));
        };
        let party = RelyingParty::new(url, self.rp_id.as_deref()).map_err(|error| {
            let name = if matches!(error, RelyingPartyError::OtherDomain(_)) { "rp-id" } else { "app-url" };
            ConfigError::Value(format!("{name} {error}"))
        })?;
        Ok(Some(WebSettings {
            party,
            is_admin_on: self.web_admin == Some(Switch::On),
            role_keys: app::config::RoleKeys::default(),
            terms_url: self.terms_url.clone(),
            country_rule: self.country_rule.clone(),
        }))
    }

    /// Checks that several processes can divide the service among themselves.
    ///
    /// # Errors
    /// If the process has not all roles although the chain or the database allows only one process.
    pub fn check_roles(&self) -> Result<(), ConfigError> {
        if self.roles.are_all() {
            return Ok(());
        }
        let wrong = |why: &str| {
            Err(ConfigError::Value(format!("roles must be all ({}): {why}", ProcessRoles::default())))
        };
        if self.rpc_urls.is_empty() {
            return wrong("without rpc-url, the chain is embedded in one process, which must do everything");
        }
        if self.database_url.expose_secret().starts_with("sqlite:") {
            return wrong("SQLite is the database of one process. Set a PostgreSQL database-url first");
        }
        Ok(())
    }

    /// Returns the settings of the tools for agents, or `None` if they are off.
    pub fn mcp_settings(&self) -> Option<McpSettings> {
        let is_on = self.mcp.map_or(self.mcp_trading, |mcp| mcp == Switch::On);
        is_on.then(|| McpSettings { can_trade: self.mcp_trading, hosts: self.mcp_hosts.clone() })
    }

    /// Returns the allowed webhook targets, by default only public ones.
    pub fn targets(&self) -> WebhookTargets {
        self.webhook_targets.unwrap_or(WebhookTargets::Public)
    }

    /// Returns the JSON-RPC URLs of the nodes, with their access keys.
    pub fn exposed_rpc_urls(&self) -> Vec<&str> {
        self.rpc_urls.iter().map(SecretString::expose_secret).collect()
    }
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

const DEFAULT_SHUTDOWN_DELAY_S: u16 = 5;
/// Upper bound of the delay of a shutdown. Supervisors kill a process long before that.
const MAX_SHUTDOWN_DELAY_S: u16 = 300;

/// Upper bound of the confirmation window. The amounts that a held trade reserves count towards the
/// daily caps, so a trade must not be held for longer than a day.
const DAY_S: u32 = 24 * 60 * 60;

impl Settings {
    /// Fills the absent options from the TOML file.
    pub fn or_from_file(self, file: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = file else { return Ok(self) };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map(Zeroizing::new)
            .map_err(|source| ConfigError::File { path: name.clone(), source })?;
        let of_file: Self = toml::from_str(&text).map_err(|error| {
            // Only the line is shown: the text around it may contain a password.
            let before = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(before).filter(|byte| *byte == b'\n').count();
            let detail = format!("line {line}: {}", in_plain_words(error.message()));
            ConfigError::Form { path: name, detail }
        })?;
        Ok(Self {
            data_dir: self.data_dir.or(of_file.data_dir),
            database_url: self.database_url.or(of_file.database_url),
            database_url_file: self.database_url_file.or(of_file.database_url_file),
            database_read_url: self.database_read_url.or(of_file.database_read_url),
            database_read_url_file: self.database_read_url_file.or(of_file.database_read_url_file),
            redis_url: self.redis_url.or(of_file.redis_url),
            redis_url_file: self.redis_url_file.or(of_file.redis_url_file),
            rpc_url: self.rpc_url.or(of_file.rpc_url),
            rpc_url_file: self.rpc_url_file.or(of_file.rpc_url_file),
            node_agreement: self.node_agreement.or(of_file.node_agreement),
            contracts: self.contracts.or(of_file.contracts),
            secrets_file: self.secrets_file.or(of_file.secrets_file),
            deployment: self.deployment.or(of_file.deployment),
            roles: self.roles.or(of_file.roles),
            listen: self.listen.or(of_file.listen),
            rpc_listen: self.rpc_listen.or(of_file.rpc_listen),
            ops_listen: self.ops_listen.or(of_file.ops_listen),
            private_hosts: self.private_hosts.or(of_file.private_hosts),
            shutdown_delay_s: self.shutdown_delay_s.or(of_file.shutdown_delay_s),
            log_level: self.log_level.or(of_file.log_level),
            otlp_endpoint: self.otlp_endpoint.or(of_file.otlp_endpoint),
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
            gas_treasury: self.gas_treasury.or(of_file.gas_treasury),
            gas_treasury_daily_wei: self.gas_treasury_daily_wei.or(of_file.gas_treasury_daily_wei),
            max_acts_per_day: self.max_acts_per_day.or(of_file.max_acts_per_day),
            min_act_balance_usdc: self.min_act_balance_usdc.or(of_file.min_act_balance_usdc),
            webhook_targets: self.webhook_targets.or(of_file.webhook_targets),
            nats_url: self.nats_url.or(of_file.nats_url),
            nats_url_file: self.nats_url_file.or(of_file.nats_url_file),
            nats_credentials: self.nats_credentials.or(of_file.nats_credentials),
            nats_ca: self.nats_ca.or(of_file.nats_ca),
            nats_stream: self.nats_stream.or(of_file.nats_stream),
            nats_subject: self.nats_subject.or(of_file.nats_subject),
            web: self.web.or(of_file.web),
            max_streams: self.max_streams.or(of_file.max_streams),
            // A flag changes its share, and leaves the others of the file.
            budget: match (of_file.budget, self.budget) {
                (Some(of_file), Some(flags)) => Some([of_file, flags].concat()),
                (of_file, flags) => flags.or(of_file),
            },
            web_admin: self.web_admin.or(of_file.web_admin),
            mcp: self.mcp.or(of_file.mcp),
            mcp_trading: self.mcp_trading.or(of_file.mcp_trading),
            mcp_hosts: self.mcp_hosts.or(of_file.mcp_hosts),
            sandbox: self.sandbox.or(of_file.sandbox),
            rp_id: self.rp_id.or(of_file.rp_id),
            terms_url: self.terms_url.or(of_file.terms_url),
            country_header: self.country_header.or(of_file.country_header),
            refused_countries: self.refused_countries.or(of_file.refused_countries),
        })
    }

    /// Validates the options and applies the defaults.
    pub fn decide(self) -> Result<ResolvedConfig, ConfigError> {
        let data_dir = self.data_dir.unwrap_or_else(|| PathBuf::from(".foretell"));
        let database_url = secret_of("database-url", self.database_url, self.database_url_file)?
            .unwrap_or_else(|| format!("sqlite:{}", data_dir.join("foretell.db").display()).into());
        let database_read_url =
            secret_of("database-read-url", self.database_read_url, self.database_read_url_file)?;
        if database_read_url.is_some() && database_url.expose_secret().starts_with("sqlite:") {
            return Err(ConfigError::Value(
                "database-read-url requires a PostgreSQL database-url: SQLite has no replicas".to_owned(),
            ));
        }
        let redis_url = secret_of("redis-url", self.redis_url, self.redis_url_file)?;
        let rpc_urls = secrets_of("rpc-url", self.rpc_url, self.rpc_url_file)?.unwrap_or_default();
        let roles = ProcessRoles::new(self.roles).map_err(|error| ConfigError::Value(error.to_string()))?;
        let nats = NatsSettings::resolve(GivenNatsSettings {
            urls: secrets_of("nats-url", self.nats_url, self.nats_url_file)?,
            stream: self.nats_stream,
            subject: self.nats_subject,
            credentials: self.nats_credentials,
            ca: self.nats_ca,
        });
        let nats = match nats {
            // All processes may share a file, and only dispatchers have the URL.
            Err(NatsSettingsError::WithoutUrl(_)) if !roles.has(ProcessRole::Dispatcher) => None,
            nats => nats.map_err(|error| ConfigError::Value(error.to_string()))?,
        };
        let node_agreement = node_agreement(self.node_agreement, rpc_urls.len())?;
        if self.confirmations == Some(0) {
            return Err(ConfigError::Value(
                "confirmations must be at least 1: the trade's own block counts".to_owned(),
            ));
        }
        if self.confirmation_window_s.is_some_and(|window_s| !(1..=DAY_S).contains(&window_s)) {
            return Err(ConfigError::Value(format!("confirmation-window-s must be from 1 to {DAY_S}")));
        }
        if self.default_slippage_bps.is_some_and(|bps| bps > 10_000) {
            return Err(ConfigError::Value("default-slippage-bps must be at most 10000".to_owned()));
        }
        // Otherwise an operator could believe that agents trade.
        if self.mcp_trading == Some(Switch::On) && self.mcp == Some(Switch::Off) {
            return Err(ConfigError::Value("mcp-trading must not be on while mcp is off".to_owned()));
        }
        if self.environment == Some(EnvironmentSetting::Live) && self.sandbox == Some(Switch::On) {
            return Err(ConfigError::Value("sandbox must not be on in the environment live".to_owned()));
        }
        // Local targets allow SSRF, so they must never reach production.
        if self.environment == Some(EnvironmentSetting::Live)
            && self.webhook_targets == Some(WebhookTargets::Local)
        {
            return Err(ConfigError::Value(
                "webhook-targets must not be local outside of the environment test".to_owned(),
            ));
        }
        // An external node has its own JSON-RPC endpoint, so the setting would silently do nothing.
        if !rpc_urls.is_empty() && matches!(self.rpc_listen, Some(OptionalListen::At(_))) {
            return Err(ConfigError::Value(
                "rpc-listen and rpc-url must not both be set: only the embedded chain has an rpc-listen"
                    .to_owned(),
            ));
        }
        let environment = self.environment.unwrap_or(EnvironmentSetting::Test);
        let act_limits = OwnerActLimits::of(environment.into());
        let per_address = self.max_connections_per_address;
        // The default share of a network must not cut off what an older setting allows one address.
        let wider = |scope| {
            let share = Budget::Connections.default_share(scope).limit();
            per_address.filter(|limit| share.is_some_and(|share| share < *limit as u64))
        };
        let older = [
            (Budget::Streams, Scope::Total, self.max_streams),
            // Each of these browsers follows ten markets, on average.
            (Budget::Topics, Scope::Total, self.max_streams.map(|streams| streams.saturating_mul(10))),
            (Budget::Connections, Scope::Total, self.max_connections),
            (Budget::Connections, Scope::Address, per_address),
            (Budget::Connections, Scope::Network, wider(Scope::Network)),
            (Budget::Connections, Scope::Site, wider(Scope::Site)),
        ];
        let budgets = budgets(&older, self.budget);
        let config = ResolvedConfig {
            connections: connections(&budgets)?,
            rpc_listen: self.rpc_listen,
            ops_listen: self.ops_listen,
            private_hosts: host_names("private-hosts", self.private_hosts)?,
            log_level: log_level(self.log_level)?,
            otlp_endpoint: otlp_endpoint(self.otlp_endpoint)?,
            shutdown_delay: shutdown_delay(self.shutdown_delay_s, environment)?,
            contracts: self.contracts.unwrap_or_else(|| data_dir.join("contracts.json")),
            secrets_file: self.secrets_file.unwrap_or_else(|| data_dir.join("secrets.json")),
            deployment: self.deployment.unwrap_or_else(|| data_dir.join("deployment.json")),
            roles,
            data_dir,
            database_url,
            database_read_url,
            redis_url,
            rpc_urls,
            node_agreement,
            listen: self.listen.unwrap_or(DEFAULT_LISTEN),
            environment,
            docs_url: self.docs_url,
            app_url: self.app_url,
            trusted_proxies: self.trusted_proxies.unwrap_or_default(),
            confirmations: self.confirmations,
            finality: self.finality.unwrap_or(FinalitySetting::Depth),
            first_block: self.first_block.unwrap_or(0),
            confirmation_window_s: self.confirmation_window_s,
            redemptions: self.redemptions.unwrap_or(RedemptionsSetting::SelfService),
            min_trade: usdc("min-trade-usdc", self.min_trade_usdc)?.unwrap_or(app::config::DEFAULT_MINIMUM),
            min_claim: usdc("min-claim-usdc", self.min_claim_usdc)?.unwrap_or(app::config::DEFAULT_MINIMUM),
            default_slippage_bps: self.default_slippage_bps.unwrap_or(app::config::DEFAULT_SLIPPAGE_BPS),
            max_fee_per_gas: max_fee_per_gas(self.max_fee_gwei)?,
            gas_treasury: gas_treasury(self.gas_treasury, self.gas_treasury_daily_wei)?,
            owner_acts: OwnerActLimits {
                per_day: self.max_acts_per_day.unwrap_or(act_limits.per_day),
                min_balance: usdc("min-act-balance-usdc", self.min_act_balance_usdc)?
                    .unwrap_or(act_limits.min_balance),
            },
            webhook_targets: self.webhook_targets,
            nats,
            web: self.web,
            web_admin: self.web_admin,
            mcp: self.mcp,
            mcp_trading: self.mcp_trading == Some(Switch::On),
            mcp_hosts: host_names("mcp-hosts", self.mcp_hosts)?,
            sandbox: self.sandbox,
            rp_id: self.rp_id,
            terms_url: terms_url(self.terms_url)?,
            country_rule: country_rule(self.country_header, self.refused_countries)?,
            local_url: None,
            sample_users: Vec::new(),
            budgets,
        };
        config.web_settings()?;
        Ok(config)
    }
}

/// Validates names of hosts.
fn host_names(setting: &str, given: Option<Vec<String>>) -> Result<Vec<String>, ConfigError> {
    let hosts = given.unwrap_or_default();
    let is_name = |host: &String| {
        let authority = host.parse::<Authority>();
        authority.is_ok_and(|authority| authority.host() == host.as_str())
    };
    if let Some(host) = hosts.iter().find(|host| !is_name(host)) {
        return Err(ConfigError::Value(format!(
            "{setting} must be names of hosts without scheme and port, such as api.foretell.example, not {host}"
        )));
    }
    Ok(hosts)
}

fn log_level(given: Option<String>) -> Result<Option<String>, ConfigError> {
    if let Some(text) = &given {
        crate::logging::check(text).map_err(|error| ConfigError::Value(format!("log-level: {error}")))?;
    }
    Ok(given)
}

fn otlp_endpoint(given: Option<String>) -> Result<Option<OtlpEndpoint>, ConfigError> {
    let parsed = given.map(|text| OtlpEndpoint::parse(&text)).transpose();
    parsed.map_err(|error| ConfigError::Value(format!("otlp-endpoint {error}")))
}

fn shutdown_delay(seconds: Option<u16>, environment: EnvironmentSetting) -> Result<Duration, ConfigError> {
    let default = match environment {
        EnvironmentSetting::Live => DEFAULT_SHUTDOWN_DELAY_S,
        EnvironmentSetting::Test => 0,
    };
    let seconds = seconds.unwrap_or(default);
    if seconds > MAX_SHUTDOWN_DELAY_S {
        let text = format!("shutdown-delay-s must be at most {MAX_SHUTDOWN_DELAY_S}");
        return Err(ConfigError::Value(text));
    }
    Ok(Duration::from_secs(u64::from(seconds)))
}

fn terms_url(given: Option<String>) -> Result<Option<String>, ConfigError> {
    let is_web = |text: &String| {
        text.parse::<Uri>().is_ok_and(|url| matches!(url.scheme_str(), Some("https" | "http")))
    };
    match given {
        Some(text) if !is_web(&text) => {
            Err(ConfigError::Value("terms-url must be an http or https URL".to_owned()))
        }
        given => Ok(given),
    }
}

fn country_rule(
    header: Option<String>,
    refused: Option<Vec<String>>,
) -> Result<Option<CountryRule>, ConfigError> {
    let wrong = |detail: &str| Err(ConfigError::Value(detail.to_owned()));
    let (header, refused) = match (header, refused) {
        (Some(header), Some(refused)) => (header, refused),
        (None, None) => return Ok(None),
        _ => return wrong("country-header and refused-countries must be set together"),
    };
    if HeaderName::try_from(&header).is_err() {
        return wrong("country-header must be the name of a header");
    }
    let is_code = |code: &String| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if refused.is_empty() || !refused.iter().all(is_code) {
        return wrong("refused-countries must be codes of two letters, such as US");
    }
    Ok(Some(CountryRule { header, refused: refused.iter().map(|code| code.to_ascii_uppercase()).collect() }))
}

/// Removes the names of Rust types from a parser message, because operators read it.
fn in_plain_words(message: &str) -> String {
    ["u8", "u16", "u32", "u64", "i64"].into_iter().fold(message.to_owned(), |message, integer| {
        message.replace(&format!("expected {integer}"), "expected a whole number")
    })
}

/// Reads secrets from the setting, or one per line from the file that the `-file` variant names.
fn secrets_of(
    name: &str,
    secrets: Option<Vec<SecretString>>,
    file: Option<PathBuf>,
) -> Result<Option<Vec<SecretString>>, ConfigError> {
    let lines: Vec<SecretString> = match (secrets, file) {
        (Some(_), Some(_)) => {
            return Err(ConfigError::Value(format!("{name} and {name}-file must not both be set")));
        }
        (Some(secrets), None) => secrets,
        (None, None) => return Ok(None),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(&path)
                .map(Zeroizing::new)
                .map_err(|source| ConfigError::File { path: path.display().to_string(), source })?;
            text.lines().map(SecretString::from).collect()
        }
    };
    let secrets = lines.iter().map(|line| line.expose_secret().trim());
    let secrets: Vec<SecretString> =
        secrets.filter(|secret| !secret.is_empty()).map(SecretString::from).collect();
    if secrets.is_empty() {
        return Err(ConfigError::Value(format!("{name} must contain at least one URL")));
    }
    Ok(Some(secrets))
}

fn node_agreement(wanted: Option<usize>, nodes: usize) -> Result<usize, ConfigError> {
    match wanted {
        None => Ok(1),
        Some(wanted) if (1..=nodes).contains(&wanted) => Ok(wanted),
        // The general message would name a range from 1 to 0.
        Some(_) if nodes == 0 => Err(ConfigError::Value(
            "node-agreement requires rpc-url: the embedded chain has no nodes".to_owned(),
        )),
        Some(_) => Err(ConfigError::Value(format!(
            "node-agreement must be between 1 and the number of nodes, which is {nodes}"
        ))),
    }
}

/// Deserializes a string or a list of strings.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<SecretString>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        One(SecretString),
        Several(Vec<SecretString>),
    }
    Ok(Some(match Value::deserialize(deserializer)? {
        Value::One(one) => vec![one],
        Value::Several(several) => several,
    }))
}

fn mask_url<S: Serializer>(url: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    url.as_ref().map(masked).serialize(serializer)
}

fn mask_urls<S: Serializer>(urls: &Option<Vec<SecretString>>, serializer: S) -> Result<S::Ok, S::Error> {
    let masked = urls.as_ref().map(|urls| urls.iter().map(masked).collect::<Vec<_>>());
    masked.serialize(serializer)
}

/// Masks the parts of a URL that may contain a password or an access key.
fn masked(url: &SecretString) -> String {
    let text = url.expose_secret();
    if text.starts_with("sqlite:") {
        return text.to_owned();
    }
    let Some((url, host)) = reqwest::Url::parse(text).ok().and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some((url, host))
    }) else {
        return "set, not shown".to_owned();
    };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}/…", url.scheme())
}

/// Parses the amount of the setting `name`.
fn usdc(name: &str, text: Option<String>) -> Result<Option<Usdc>, ConfigError> {
    let parsed = text.map(|text| text.trim().parse()).transpose();
    parsed.map_err(|_| {
        ConfigError::Value(format!("{name} must be a decimal amount of USDC with at most 6 decimals"))
    })
}

/// Converts a decimal text in gwei to a fee ceiling in wei. 0 means no ceiling.
fn max_fee_per_gas(gwei: Option<String>) -> Result<Option<u128>, ConfigError> {
    let Some(text) = gwei else { return Ok(None) };
    let wrong = || {
        ConfigError::Value("max-fee-gwei must be a decimal number of gwei with at most 9 decimals".to_owned())
    };
    // Parse by hand: floats cannot represent all amounts exactly.
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || whole.len() > 12 || decimals.len() > 9 {
        return Err(wrong());
    }
    let wei: u128 = format!("{whole}{decimals:0<9}").parse().map_err(|_| wrong())?;
    // The largest fee means "no ceiling", so that only `None` selects the chain's default.
    Ok(Some(if wei == 0 { u128::MAX } else { wei }))
}

fn gas_treasury(key: Option<PathBuf>, cap: Option<String>) -> Result<Option<(PathBuf, u128)>, ConfigError> {
    let cap = cap.map(|text| text.trim().parse::<u128>()).transpose();
    let cap = cap
        .map_err(|_| ConfigError::Value("gas-treasury-daily-wei must be a whole number of wei".to_owned()))?;
    match (key, cap) {
        (None, None) => Ok(None),
        (Some(key), Some(cap)) => Ok(Some((key, cap))),
        _ => {
            Err(ConfigError::Value("gas-treasury and gas-treasury-daily-wei must be set together".to_owned()))
        }
    }
}

/// Returns the shares of the budgets. Settings that are older than the table set theirs, unless the
/// table does.
fn budgets(older: &[(Budget, Scope, Option<usize>)], given: Option<Vec<BudgetSetting>>) -> BudgetShares {
    let older = older.iter().filter_map(|(budget, scope, limit)| {
        let share = Share::new((*limit)? as u64);
        Some(BudgetSetting { budget: *budget, scope: *scope, share })
    });
    BudgetShares::default().with(older).with(given.unwrap_or_default())
}

fn connections(budgets: &BudgetShares) -> Result<ServeLimits, ConfigError> {
    let connections = ConnectionLimits::of_budget(budgets);
    let ConnectionLimits { address, network, site, total } = connections;
    if [address, network, site, total].contains(&0) {
        return Err(ConfigError::Value(
            "max-connections, max-connections-per-address and the shares of the budget connections must be \
             at least 1"
                .to_owned(),
        ));
    }
    Ok(ServeLimits { connections, ..ServeLimits::default() })
}

/// Deserializes the table of the file: a table for each budget, with its shares.
fn budget_tables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<BudgetSetting>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Limit {
        Number(u64),
        Word(String),
    }
    let tables = BTreeMap::<String, BTreeMap<String, Limit>>::deserialize(deserializer)?;
    let setting = |budget: &str, scope: &str, limit: &Limit| {
        let limit = match limit {
            Limit::Number(number) => number.to_string(),
            Limit::Word(word) => word.clone(),
        };
        BudgetSetting::parse(budget, scope, &limit).map_err(serde::de::Error::custom)
    };
    let shares = tables
        .iter()
        .flat_map(|(budget, shares)| shares.iter().map(move |(scope, limit)| setting(budget, scope, limit)));
    shares.collect::<Result<_, _>>().map(Some)
}

fn budget_texts<S: Serializer>(
    settings: &Option<Vec<BudgetSetting>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let texts = settings.as_ref().map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
    texts.serialize(serializer)
}

/// Reads a secret from the setting, or from the file that the `-file` variant names.
pub(crate) fn secret_of(
    name: &str,
    secret: Option<SecretString>,
    file: Option<PathBuf>,
) -> Result<Option<SecretString>, ConfigError> {
    match (secret, file) {
        (Some(_), Some(_)) => Err(ConfigError::Value(format!("{name} and {name}-file must not both be set"))),
        (secret, None) => Ok(secret),
        (None, Some(path)) => match std::fs::read_to_string(&path).map(Zeroizing::new) {
            Ok(text) => Ok(Some(text.trim().into())),
            Err(source) => Err(ConfigError::File { path: path.display().to_string(), source }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed(secret: &SecretString) -> String {
        secret.expose_secret().to_owned()
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let folder = std::env::temp_dir().join(format!("foretell-config-{}", std::process::id()));
        std::fs::write(&folder, "listen = \"127.0.0.1:1\"\nconfirmations = 3\n").unwrap();
        let flags = Settings { listen: Some("127.0.0.1:2".parse().unwrap()), ..Settings::default() };
        let config = flags.or_from_file(Some(&folder)).unwrap().decide().unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(config.listen.port(), 2);
        assert_eq!(config.confirmations, Some(3));
    }

    #[test]
    fn a_confirmation_window_is_a_second_to_a_day() {
        let window = |seconds| {
            let options = Settings { confirmation_window_s: Some(seconds), ..Settings::default() };
            options.decide().map(|config| config.confirmation_window_s).ok().flatten()
        };
        assert_eq!((window(1), window(DAY_S)), (Some(1), Some(DAY_S)));
        assert_eq!((window(0), window(DAY_S + 1)), (None, None));
    }

    #[test]
    fn a_wrong_setting_is_reported_without_rusts_types() {
        let error = toml::from_str::<Settings>("confirmations = \"three\"").unwrap_err();
        let message = in_plain_words(error.message());
        assert!(message.contains("expected a whole number") && !message.contains("u64"), "{message}");
    }

    #[test]
    fn an_error_of_the_file_names_the_file_and_the_line() {
        let path = std::env::temp_dir().join(format!("foretell-config-line-{}", std::process::id()));
        for (line, expected) in [
            ("confirmations = \"three\"", "line 2: invalid type: string \"three\", expected a whole number"),
            ("lisen = \"127.0.0.1:1\"", "line 2: unknown field `lisen`, expected one of `data-dir`"),
            ("finality = \"soon\"", "line 2: unknown variant `soon`, expected `depth` or `finalized`"),
        ] {
            std::fs::write(&path, format!("environment = \"test\"\n{line}\n")).unwrap();
            let error = Settings::default().or_from_file(Some(&path)).unwrap_err().to_string();
            let prefix = format!("{} is not a configuration file: {expected}", path.display());
            assert!(error.starts_with(&prefix), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_unknown_setting_is_rejected() {
        assert!(toml::from_str::<Settings>("lisen = \"127.0.0.1:1\"").is_err());
    }

    #[test]
    fn redemptions_and_webhook_targets_have_defaults_and_known_values() {
        assert_eq!(Settings::default().decide().unwrap().redemptions, RedemptionsSetting::SelfService);
        for word in [RedemptionsSetting::SelfService, RedemptionsSetting::Automatic] {
            let options: Settings = toml::from_str(&format!("redemptions = \"{}\"", word.as_str())).unwrap();
            assert_eq!(options.decide().unwrap().redemptions, word);
        }
        assert!(toml::from_str::<Settings>("redemptions = \"manual\"").is_err());
        assert_eq!(Settings::default().decide().unwrap().targets(), WebhookTargets::Public);
        for word in [WebhookTargets::Public, WebhookTargets::Local] {
            let options: Settings =
                toml::from_str(&format!("webhook-targets = \"{}\"", word.as_str())).unwrap();
            assert_eq!(options.decide().unwrap().targets(), word);
        }
    }

    #[test]
    fn webhooks_stay_out_of_local_networks_in_live() {
        let with = |environment| Settings {
            environment: Some(environment),
            webhook_targets: Some(WebhookTargets::Local),
            ..Settings::default()
        };
        assert!(with(EnvironmentSetting::Test).decide().is_ok());
        assert!(with(EnvironmentSetting::Live).decide().is_err());
    }

    #[test]
    fn the_web_application_needs_a_url_where_passkeys_work() {
        let decide = |text: &str| toml::from_str::<Settings>(text).unwrap().decide();
        assert!(decide("").unwrap().web_settings().unwrap().is_none());
        let url = "web = \"on\"\napp-url = \"https://app.foretell.example\"";
        let web = |text: &str| decide(text).unwrap().web_settings().unwrap().unwrap();
        assert_eq!((web(url).party.id(), web(url).is_admin_on), ("app.foretell.example", false));
        let parent = web(&format!("{url}\nrp-id = \"foretell.example\"\nweb-admin = \"on\""));
        assert_eq!((parent.party.id(), parent.is_admin_on), ("foretell.example", true));
        let refused = |text: &str| decide(text).unwrap_err().to_string();
        assert_eq!(refused("web = \"on\""), "web requires app-url");
        let other = refused(&format!("{url}\nrp-id = \"other.example\""));
        assert_eq!(other, "rp-id must be the host app.foretell.example or a parent domain of it");
        let plain = refused("web = \"on\"\napp-url = \"http://foretell.example\"");
        assert_eq!(plain, "app-url must be an https URL, or http://localhost");
    }

    #[test]
    fn the_law_of_the_operator_is_refused_if_it_could_not_hold() {
        let decide = |text: &str| toml::from_str::<Settings>(text).unwrap().decide();
        let whole = "country-header = \"cf-ipcountry\"\nrefused-countries = [\"us\", \"T1\"]";
        let rule = decide(whole).unwrap().country_rule.unwrap();
        assert_eq!(
            (rule.header.as_str(), rule.refused),
            ("cf-ipcountry", vec!["US".to_owned(), "T1".to_owned()])
        );
        for wrong in [
            "country-header = \"cf-ipcountry\"",
            "refused-countries = [\"US\"]",
            "country-header = \"a b\"\nrefused-countries = [\"US\"]",
            "country-header = \"c\"\nrefused-countries = [\"USA\"]",
            "country-header = \"c\"\nrefused-countries = []",
            "terms-url = \"terms\"",
            "terms-url = \"javascript:alert(1)\"",
        ] {
            assert!(decide(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nodes_come_from_flags_from_the_file_or_from_a_file_of_their_own() {
        let rpc_urls = |config: &ResolvedConfig| config.rpc_urls.iter().map(exposed).collect::<Vec<_>>();
        let of_toml =
            |text| toml::from_str::<Settings>(text).unwrap().decide().map(|config| rpc_urls(&config));
        assert_eq!(of_toml("rpc-url = \"http://a\"").unwrap(), ["http://a"]);
        assert_eq!(of_toml("rpc-url = [\"http://a\", \"http://b\"]").unwrap(), ["http://a", "http://b"]);
        assert_eq!(rpc_urls(&Settings::default().decide().unwrap()), [""; 0]);
        let path = std::env::temp_dir().join(format!("foretell-rpc-urls-{}", std::process::id()));
        std::fs::write(&path, "https://node.example/key\n\nhttps://other.example\n").unwrap();
        let from_file = Settings { rpc_url_file: Some(path.clone()), ..Settings::default() };
        let both = Settings { rpc_url: Some(vec!["http://a".into()]), ..from_file.clone() };
        let config = from_file.decide().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(config.exposed_rpc_urls(), ["https://node.example/key", "https://other.example"]);
        assert_eq!(both.decide().unwrap_err().to_string(), "rpc-url and rpc-url-file must not both be set");
    }

    #[test]
    fn node_agreement_is_at_most_the_number_of_nodes() {
        let with = |nodes: usize, agreement| {
            let urls = (nodes > 0).then(|| vec!["http://a".into(); nodes]);
            let options = Settings { rpc_url: urls, node_agreement: agreement, ..Settings::default() };
            options.decide().map(|config| config.node_agreement).ok()
        };
        assert_eq!((with(0, None), with(3, None), with(3, Some(3))), (Some(1), Some(1), Some(3)));
        assert_eq!((with(0, Some(1)), with(3, Some(4)), with(3, Some(0))), (None, None, None));
    }

    #[test]
    fn amounts_and_slippage_have_defaults_and_bounds() {
        let config = Settings::default().decide().unwrap();
        let cent = Usdc::from_atomic(10_000);
        assert_eq!((config.min_trade, config.min_claim, config.default_slippage_bps), (cent, cent, 200));
        let file = "min-trade-usdc = \"0\"\nmin-claim-usdc = \"1.5\"\ndefault-slippage-bps = 10000";
        let config = toml::from_str::<Settings>(file).unwrap().decide().unwrap();
        assert_eq!((config.min_trade, config.min_claim), (Usdc::ZERO, Usdc::from_atomic(1_500_000)));
        for wrong in ["min-trade-usdc = \"-1\"", "min-claim-usdc = \"1e3\"", "default-slippage-bps = 10001"] {
            assert!(toml::from_str::<Settings>(wrong).unwrap().decide().is_err(), "{wrong}");
        }
    }

    #[test]
    fn acts_need_a_balance_only_in_the_live_environment() {
        let limits = |file: &str| toml::from_str::<Settings>(file).unwrap().decide().unwrap().owner_acts;
        let of = |per_day, min_balance| OwnerActLimits { per_day, min_balance };
        assert_eq!(limits(""), of(20, Usdc::ZERO));
        assert_eq!(limits("environment = \"live\""), of(20, Usdc::from_whole(1)));
        let file = "environment = \"live\"\nmin-act-balance-usdc = \"0.5\"\nmax-acts-per-day = 3";
        assert_eq!(limits(file), of(3, Usdc::from_atomic(500_000)));
    }

    #[test]
    fn a_gas_treasury_needs_a_daily_cap() {
        let decided = |key: Option<&str>, cap: Option<&str>| {
            let options = Settings {
                gas_treasury: key.map(PathBuf::from),
                gas_treasury_daily_wei: cap.map(str::to_owned),
                ..Settings::default()
            };
            options.decide().map(|config| config.gas_treasury).ok()
        };
        assert_eq!(decided(None, None), Some(None));
        assert_eq!(decided(Some("key"), Some("700")), Some(Some((PathBuf::from("key"), 700))));
        for (key, cap) in [(Some("key"), None), (None, Some("1")), (Some("key"), Some("0.1"))] {
            assert_eq!(decided(key, cap), None);
        }
    }

    #[test]
    fn the_fee_ceiling_is_in_gwei_and_0_disables_it() {
        let ceiling = |text: &str| {
            let options = Settings { max_fee_gwei: Some(text.to_owned()), ..Settings::default() };
            options.decide().map(|config| config.max_fee_per_gas).ok()
        };
        assert_eq!(Settings::default().decide().unwrap().max_fee_per_gas, None);
        assert_eq!(ceiling("30"), Some(Some(30_000_000_000)));
        assert_eq!(ceiling("0.000000001"), Some(Some(1)));
        assert_eq!([ceiling("0"), ceiling("0.0")], [Some(Some(u128::MAX)); 2]);
        for wrong in ["", "-1", "1.", ".5", "1e3", "0.0000000001", "1 gwei"] {
            assert_eq!(ceiling(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_embedded_chains_json_rpc_is_off_unless_an_address_is_set() {
        let decide = |text: &str| toml::from_str::<Settings>(text).unwrap().decide();
        assert_eq!(decide("").unwrap().rpc_listen, None);
        assert_eq!(decide("rpc-listen = \"off\"").unwrap().rpc_listen, Some(OptionalListen::Off));
        let address = OptionalListen::At("127.0.0.1:8545".parse().unwrap());
        assert_eq!(decide("rpc-listen = \"127.0.0.1:8545\"").unwrap().rpc_listen, Some(address));
        assert!(decide("rpc-listen = \"127.0.0.1:8545\"\nrpc-url = \"http://node\"").is_err());
        assert!(toml::from_str::<Settings>("rpc-listen = \"on\"").is_err());
    }

    #[test]
    fn a_collectors_credentials_are_no_part_of_its_url() {
        let decide = |url: &str| {
            let options = Settings { otlp_endpoint: Some(url.to_owned()), ..Settings::default() };
            options.decide().map(|config| config.otlp_endpoint)
        };
        let endpoint = decide("http://127.0.0.1:4318").unwrap().unwrap();
        assert_eq!(endpoint.as_str(), "http://127.0.0.1:4318/v1/traces");
        let refused = decide("http://user:secret@collector").unwrap_err().to_string();
        assert!(refused.starts_with("otlp-endpoint must be") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn a_live_process_goes_on_serving_for_five_seconds_after_it_was_told_to_stop() {
        let delay_s = |text: &str| {
            let decided = toml::from_str::<Settings>(text).unwrap().decide();
            decided.map(|config| config.shutdown_delay.as_secs()).ok()
        };
        assert_eq!((delay_s(""), delay_s("environment = \"live\"")), (Some(0), Some(5)));
        assert_eq!((delay_s("shutdown-delay-s = 300"), delay_s("shutdown-delay-s = 301")), (Some(300), None));
    }

    #[test]
    fn a_share_of_a_budget_comes_from_a_flag_the_file_or_an_older_setting() {
        let path = std::env::temp_dir().join(format!("foretell-budgets-{}", std::process::id()));
        let text = "max-streams = 7\nmax-connections = 50\n[budgets.streams]\naddress = 3\nnetwork = \"off\"\n\
            [budgets.connections]\ntotal = 60\n";
        std::fs::write(&path, text).unwrap();
        let flag = "streams.address=5".parse().unwrap();
        let flags = Settings { budget: Some(vec![flag]), ..Settings::default() };
        let config = flags.or_from_file(Some(&path)).unwrap().decide().unwrap();
        std::fs::remove_file(&path).unwrap();
        let share = |scope| config.budgets.share(Budget::Streams, scope);
        assert_eq!(share(Scope::Address), Share::new(5));
        assert_eq!((share(Scope::Network), share(Scope::Total)), (Share::OFF, Share::new(7)));
        assert_eq!(config.budgets.share(Budget::Topics, Scope::Total), Share::new(70));
        assert_eq!(config.connections.connections.total, 60);
        let refused = |text: &str| toml::from_str::<Settings>(text).unwrap_err().message().to_owned();
        assert!(refused("[budgets.steams]\naddress = 3").starts_with("steams is no budget"));
        assert!(refused("[budgets.streams]\naddress = \"no\"").contains("streams.address must be"));
    }

    #[test]
    fn the_limits_of_connections_are_at_least_one() {
        let decide = |text: &str| {
            toml::from_str::<Settings>(text).unwrap().decide().map(|it| it.connections.connections)
        };
        let ConnectionLimits { address, network, site, total } =
            decide("max-connections = 9\nmax-connections-per-address = 3").unwrap();
        assert_eq!((address, network, site, total), (3, 1_024, 1_024, 9));
        let many = decide("max-connections-per-address = 2000").unwrap();
        assert_eq!((many.address, many.network, many.site), (2_000, 2_000, 2_000));
        let chosen =
            "max-connections-per-address = 2000\n[budgets.connections]\nnetwork = 50\nsite = \"off\"";
        let chosen = decide(chosen).unwrap();
        assert_eq!((chosen.address, chosen.network, chosen.site), (2_000, 50, usize::MAX));
        for none in
            ["max-connections = 0", "max-connections-per-address = 0", "[budgets.connections]\nsite = 0"]
        {
            assert!(decide(none).is_err(), "{none}");
        }
    }

    #[test]
    fn only_nodes_and_postgresql_let_processes_share_the_work() {
        let checked = |text: &str| {
            let config = toml::from_str::<Settings>(text).unwrap().decide().unwrap();
            config.check_roles().map_err(|error| error.to_string())
        };
        let (nodes, postgres) = ("rpc-url = \"http://node\"", "database-url = \"postgres://primary/d\"");
        let split = "roles = [\"api\", \"sync\"]";
        assert_eq!(checked(&format!("{split}\n{nodes}\n{postgres}")), Ok(()));
        assert_eq!(checked("roles = [\"api\", \"executor\", \"sync\", \"dispatcher\", \"upkeep\"]"), Ok(()));
        let embedded = checked(&format!("{split}\n{postgres}")).unwrap_err();
        assert!(embedded.contains("without rpc-url, the chain is embedded"), "{embedded}");
        let sqlite = checked(&format!("{split}\n{nodes}")).unwrap_err();
        assert!(sqlite.contains("SQLite is the database of one process"), "{sqlite}");
        assert!(toml::from_str::<Settings>("roles = [\"signer\"]").is_err());
    }

    #[test]
    fn the_sandbox_is_never_on_in_the_environment_live() {
        let decide = |text: &str| toml::from_str::<Settings>(text).unwrap().decide();
        assert_eq!(decide("sandbox = \"on\"").unwrap().sandbox, Some(Switch::On));
        let refused = decide("environment = \"live\"\nsandbox = \"on\"").unwrap_err().to_string();
        assert_eq!(refused, "sandbox must not be on in the environment live");
        assert!(decide("environment = \"live\"\nsandbox = \"off\"").is_ok());
    }

    #[test]
    fn two_database_urls_are_rejected() {
        let both = Settings {
            database_url: Some("sqlite:a".into()),
            database_url_file: Some("b".into()),
            ..Settings::default()
        };
        assert!(matches!(both.decide(), Err(ConfigError::Value(_))));
    }

    #[test]
    fn only_postgresql_has_a_replica() {
        let decide = |text: &str| toml::from_str::<Settings>(text).unwrap().decide();
        let replica = "database-read-url = \"postgres://replica/d\"";
        assert!(decide(replica).unwrap_err().to_string().contains("SQLite has no replicas"));
        let config = decide(&format!("database-url = \"postgres://primary/d\"\n{replica}")).unwrap();
        assert_eq!(config.database_read_url.as_ref().map(exposed).as_deref(), Some("postgres://replica/d"));
    }

    #[test]
    fn nats_servers_come_from_flags_or_from_a_file() {
        let path = std::env::temp_dir().join(format!("foretell-nats-urls-{}", std::process::id()));
        std::fs::write(&path, "nats://ada:hunter2@one\nnats://ada:hunter2@two\n").unwrap();
        let from_file = Settings { nats_url_file: Some(path.clone()), ..Settings::default() };
        let config = from_file.clone().decide().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(config.nats.as_ref().unwrap().servers, ["nats://one", "nats://two"]);
        let flags = Settings { nats_url: Some(vec!["nats://ada:hunter2@one".into()]), ..Settings::default() };
        assert!(!format!("{config:?} {flags:?}").contains("hunter2"));
        let alone = Settings { nats_subject: Some("a".to_owned()), ..Settings::default() };
        assert_eq!(alone.clone().decide().unwrap_err().to_string(), "nats-subject requires nats-url");
        assert!(Settings { roles: Some(vec![ProcessRole::Api]), ..alone }.decide().unwrap().nats.is_none());
        assert!(Settings::default().decide().unwrap().nats.is_none());
    }

    #[test]
    fn rediss_url_comes_from_a_flag_or_from_a_file() {
        let path = std::env::temp_dir().join(format!("foretell-redis-url-{}", std::process::id()));
        std::fs::write(&path, "redis://:secret@redis.internal\n").unwrap();
        let from_file = Settings { redis_url_file: Some(path.clone()), ..Settings::default() };
        let both = Settings { redis_url: Some("redis://a".into()), ..from_file.clone() };
        let config = from_file.decide().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(config.redis_url.as_ref().map(exposed).as_deref(), Some("redis://:secret@redis.internal"));
        assert!(!format!("{config:?} {both:?}").contains("secret@"));
        let refused = both.decide().unwrap_err().to_string();
        assert_eq!(refused, "redis-url and redis-url-file must not both be set");
        assert!(Settings::default().decide().unwrap().redis_url.is_none());
    }
}
