//! The context of the admin commands: the database at once, and the chain when they need it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Address;
use app::Ctx;
use chain::{Chain, ChainError, ChainIdentity, Contracts, Nodes};
use domain::time::SystemClock;
use domain::{Clock, ErrorCode, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use store::audit_log::Actor;
use store::sync::SyncBlock;
use store::{Store, StoreError};

use super::output::OutputRecord;
use super::{RoleKeys, refuse};
use crate::config::ResolvedConfig;
use crate::database;
use crate::entropy::SystemEntropy;
use crate::run::read_contracts;
use crate::secrets::Secrets;
use crate::service_file::ServiceFile;
use crate::start_error::StartError;

/// Interval and number of checks whether the service's sync has read a block.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);
const SYNC_LOOKS: u32 = 100;
/// Interval between two checks for a receipt. Short, because the operator waits at a terminal.
const RECEIPT_INTERVAL: Duration = Duration::from_millis(50);
/// The URL of a chain that nobody asks, or that no service has recorded. Nothing listens there.
pub const NOWHERE: &str = "http://127.0.0.1:1/";

/// The configuration and the open database.
pub struct AdminCtx {
    pub config: ResolvedConfig,
    /// Writes acts to the audit log.
    pub store: Store,
    /// The person or program that runs the command.
    pub actor: Actor,
    clock: Arc<SystemClock>,
    role_keys: RoleKeys,
}

/// The location of the chain, as recorded in the configuration or by the service.
struct Location {
    rpc_urls: Vec<SecretString>,
    contracts: Contracts,
    chain_id: Option<u64>,
}

impl AdminCtx {
    /// Opens the database, which must exist and have the current schema. Only `foretell migrate` and
    /// the service create it.
    pub async fn open(config: ResolvedConfig, actor: Actor) -> Result<Self, StartError> {
        let file = config.database_url.expose_secret().strip_prefix("sqlite:");
        let file = file.map(|path| path.strip_prefix("//").unwrap_or(path));
        // SQLite would create an empty database at a mistyped path.
        if let Some(file) = file.filter(|file| !Path::new(file).exists()) {
            return Err(StartError::Other(format!(
                "there is no database at {file}: start the service or run `foretell migrate`, or give --data-dir or --database-url"
            )));
        }
        let store = database::open(&config).await?.for_maintenance();
        database::require_current_schema(&store).await?;
        let clock = Arc::<SystemClock>::default();
        let acting = store.acting_as(actor.clone(), Arc::clone(&clock) as Arc<dyn Clock>);
        let mut admin = Self { config, store: acting, clock, actor, role_keys: RoleKeys::default() };
        if let Ok(service) = ServiceFile::read(&admin.config.data_dir) {
            // A key that is issued here must belong to the environment of the service.
            admin.config.environment = service.environment;
            let targets = admin.config.webhook_targets.or(service.webhook_targets);
            admin.config.webhook_targets = targets;
        }
        if let Some(read) = admin.last_read().await? {
            admin.not_before(read.at);
        }
        Ok(admin)
    }

    /// Advances the clock to `at`. A service with a test clock, or on a chain that mines ahead of
    /// time, is ahead of this machine, and new rows must not be older than its rows.
    fn not_before(&self, at: Timestamp) {
        self.clock.advance(at.since_ms(self.clock.now()).max(0));
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn last_read(&self) -> Result<Option<SyncBlock>, StoreError> {
        self.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await
    }

    /// Waits for running statements and closes the database.
    pub async fn close(&self) {
        self.store.close().await;
    }

    /// Sets the key files of roles.
    pub fn with_role_keys(self, role_keys: RoleKeys) -> Self {
        Self { role_keys, ..self }
    }

    /// Returns the service's secrets, with the keys of roles from the given files.
    pub fn secrets(&self) -> Result<Secrets, StartError> {
        let mut secrets = Secrets::load(&self.config.secrets_file)?;
        self.role_keys.put_into(&mut secrets.roles)?;
        Ok(secrets)
    }

    /// Returns a context for use cases that only need the database. Its chain may not answer.
    pub fn ctx(&self) -> Result<Ctx, StartError> {
        let chain = match self.location() {
            Ok(Location { rpc_urls, contracts, chain_id }) => {
                let url = rpc_urls.first().map_or(NOWHERE, SecretString::expose_secret);
                Chain::of(chain::provider(url)?, contracts, chain_id.unwrap_or_default())
            }
            Err(_) => Chain::of(chain::provider(NOWHERE)?, NO_CONTRACTS, 0),
        };
        self.with_chain(chain)
    }

    /// Returns a context with a chain that answers and has the contracts.
    pub async fn online(&self) -> Result<Ctx, StartError> {
        let Location { rpc_urls, contracts, chain_id } = self.location()?;
        let rpc_urls: Vec<&str> = rpc_urls.iter().map(SecretString::expose_secret).collect();
        // The socket is the service's own, so there is only one node.
        if let [url, ..] = rpc_urls[..]
            && chain::is_socket_url(url)
        {
            return self.beside(url, contracts, chain_id).await;
        }
        // The service's own file does not have the number of nodes that must agree.
        let agreement = if self.config.rpc_urls.is_empty() { 1 } else { self.config.node_agreement };
        let nodes = Nodes::new(&rpc_urls, agreement, &contracts)?;
        let of_service = chain_id.map(|chain_id| ChainIdentity { chain_id, genesis_hash: None });
        // Another program may have taken the address meanwhile and serve another chain there.
        if let Some(identity) = app::nodes::find_identity(&self.store).await?.or(of_service) {
            nodes.expect(identity);
        }
        let chain = Chain::over(&nodes, contracts);
        self.not_before(Timestamp::from_s(chain.head().await.map_err(unanswered)?.timestamp_s));
        self.with_chain(chain.with_poll_interval(RECEIPT_INTERVAL))
    }

    /// Returns a context with the embedded chain of the running service.
    async fn beside(
        &self,
        url: &str,
        contracts: Contracts,
        chain_id: Option<u64>,
    ) -> Result<Ctx, StartError> {
        let chain = Chain::connect(chain::provider(url)?, contracts).await.map_err(unanswered)?;
        if chain_id.is_some_and(|chain_id| chain_id != chain.chain_id()) {
            return Err(unanswered(ChainError::Rejected("another chain answers".to_owned())));
        }
        chain::deploy::verify(&chain).await.map_err(unanswered)?;
        self.not_before(Timestamp::from_s(chain.head().await.map_err(unanswered)?.timestamp_s));
        self.with_chain(chain.with_poll_interval(RECEIPT_INTERVAL))
    }

    fn with_chain(&self, chain: Chain) -> Result<Ctx, StartError> {
        let secrets = self.secrets()?;
        let mut settings =
            app::Config::new(self.config.environment.into(), secrets.key_pepper()?, secrets.sealing_keys()?);
        settings.webhooks.targets = self.config.targets().into();
        settings.executors = crate::lanes::addresses(&self.config, &secrets)?;
        // What a command settles must be as final as what the service settles. Without nodes in the
        // settings, only a running service knows its rule, and it settles everything itself.
        if !self.config.rpc_urls.is_empty() {
            settings.confirmations = self.config.confirmations;
            settings.finality = self.config.finality.into();
            settings.redemptions = self.config.redemptions.into();
            settings.min_claim = self.config.min_claim;
        }
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Ok(Ctx::new(self.store.clone(), chain, clock, Arc::new(SystemEntropy::default()), settings))
    }

    fn location(&self) -> Result<Location, StartError> {
        let service = ServiceFile::read(&self.config.data_dir);
        if !self.config.rpc_urls.is_empty() {
            return Ok(Location {
                rpc_urls: self.config.rpc_urls.clone(),
                contracts: read_contracts(&self.config.contracts)?,
                chain_id: None,
            });
        }
        let service = service.map_err(|_| {
            let folder = self.config.data_dir.display();
            refuse(
                ErrorCode::DependencyUnavailable,
                format!("No service has run in {folder}: start one, or give --rpc-url and --contracts."),
            )
        })?;
        let ServiceFile { rpc_url, other_rpc_urls, contracts, chain_id, .. } = service;
        let rpc_urls = std::iter::once(rpc_url).chain(other_rpc_urls).map(SecretString::from).collect();
        Ok(Location { rpc_urls, contracts, chain_id: Some(chain_id).filter(|chain_id| *chain_id != 0) })
    }

    /// Adds the reminder that `deployment.json` must follow a change of roles or executors. The
    /// embedded chain has no such file.
    pub fn deployment_hint(&self, record: OutputRecord) -> OutputRecord {
        match crate::deployment::read(&self.config.deployment) {
            Ok(Some(_)) => record.with("next", "foretell deploy --record, once the change has taken effect"),
            _ => record,
        }
    }

    /// Waits at most ten seconds until the running service has read the chain up to `block`. Returns
    /// whether it has.
    pub async fn follow(&self, block: u64) -> Result<bool, StartError> {
        let mut looks = tokio::time::interval(SYNC_INTERVAL);
        for _ in 0..SYNC_LOOKS {
            looks.tick().await;
            if self.last_read().await?.is_some_and(|last| last.number >= block) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub const NO_CONTRACTS: Contracts = Contracts {
    usdc: Address::ZERO,
    authority: Address::ZERO,
    hub: Address::ZERO,
    gate: Address::ZERO,
    account_factory: Address::ZERO,
};

fn unanswered(error: ChainError) -> StartError {
    refuse(
        ErrorCode::DependencyUnavailable,
        format!(
            "The service's chain does not answer: start the service, or give --rpc-url and --contracts ({error})."
        ),
    )
}
