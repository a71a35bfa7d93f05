//! `deployment.json` in the data folder: the record of what `foretell deploy` did. The file is
//! written before a database exists, and is copied into the audit log once there is one.

use std::collections::BTreeMap;
use std::path::Path;

use alloy_primitives::{Address, B256};
use chain::{Chain, ChainError, Contracts, DeploySettings};
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use store::audit_log::Actor;

use crate::config::ResolvedConfig;
use crate::secrets::Secrets;
use crate::start_error::StartError;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    at: Timestamp,
    actor: String,
    os_user: String,
    host: String,
    chain_id: u64,
    contracts: Contracts,
    owner: Address,
    resolver: Address,
    guardian: Address,
    treasury: Address,
    executors: Vec<Address>,
    hourly_volume_cap_usdc_atomic: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    other_hourly_caps: BTreeMap<Address, u64>,
    role_delay_s: u32,
    listing_delay_s: u32,
    veto_window_s: u32,
    min_freeze_s: u32,
    reference_period_s: u32,
    result_deadline_s: u32,
    #[serde(default)]
    salt: B256,
}

impl Deployment {
    /// Records a deployment of `contracts` by `actor`.
    pub fn new(
        at: Timestamp,
        actor: &Actor,
        chain_id: u64,
        contracts: Contracts,
        settings: &DeploySettings,
    ) -> Self {
        let Actor { name, os_user, host } = actor.clone();
        Self {
            at,
            actor: name,
            os_user,
            host,
            chain_id,
            contracts,
            owner: settings.owner,
            resolver: settings.resolver,
            guardian: settings.guardian,
            treasury: settings.treasury,
            executors: settings.executors.clone(),
            hourly_volume_cap_usdc_atomic: settings.hourly_volume_cap_usdc_atomic,
            other_hourly_caps: settings.other_hourly_caps.clone(),
            role_delay_s: settings.role_delay_s,
            listing_delay_s: settings.listing_delay_s,
            veto_window_s: settings.veto_window_s,
            min_freeze_s: settings.min_freeze_s,
            reference_period_s: settings.reference_period_s,
            result_deadline_s: settings.result_deadline_s,
            salt: settings.salt,
        }
    }

    /// Returns the chain id if this is the deployment of `contracts`.
    pub fn chain_of(&self, contracts: &Contracts) -> Option<u64> {
        (self.contracts == *contracts).then_some(self.chain_id)
    }

    /// Returns the Gate's address in lower case, which identifies a deployment.
    pub fn gate(&self) -> String {
        self.contracts.gate.to_string().to_lowercase()
    }

    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Returns the settings of the deployment. `usdc` is the deployed token, even if the deployment
    /// created it.
    pub fn settings(&self) -> DeploySettings {
        DeploySettings {
            usdc: Some(self.contracts.usdc),
            owner: self.owner,
            resolver: self.resolver,
            guardian: self.guardian,
            treasury: self.treasury,
            executors: self.executors.clone(),
            hourly_volume_cap_usdc_atomic: self.hourly_volume_cap_usdc_atomic,
            other_hourly_caps: self.other_hourly_caps.clone(),
            role_delay_s: self.role_delay_s,
            listing_delay_s: self.listing_delay_s,
            veto_window_s: self.veto_window_s,
            min_freeze_s: self.min_freeze_s,
            reference_period_s: self.reference_period_s,
            result_deadline_s: self.result_deadline_s,
            salt: self.salt,
        }
    }

    /// Returns the actor that made the deployment.
    pub fn actor(&self) -> Actor {
        Actor { name: self.actor.clone(), os_user: self.os_user.clone(), host: self.host.clone() }
    }

    /// Returns the executors' addresses.
    pub fn executors(&self) -> &[Address] {
        &self.executors
    }

    /// Writes the record to the file.
    pub fn write(&self, path: &Path) -> Result<(), StartError> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        std::fs::write(path, text + "\n")
            .map_err(|source| StartError::File { path: path.display().to_string(), source })
    }
}

/// Reads the record of the deployment, if there is one.
pub fn read(path: &Path) -> Result<Option<Deployment>, StartError> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| StartError::Other(format!("{name} cannot be read: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StartError::File { path: name, source }),
    }
}

/// Rejects contracts whose code, roles or settings differ from the expected ones.
pub async fn check(chain: &Chain, expected: &DeploySettings) -> Result<(), StartError> {
    chain::deploy::verify(chain).await?;
    let differences = chain.deployment_differences(expected).await?;
    if differences.is_empty() {
        return Ok(());
    }
    Err(StartError::Other(format!(
        "the contracts differ from deployment.json:\n  {}\nIf a role or an executor was changed on purpose, check the list and run \
         `foretell deploy --record`.",
        differences.join("\n  ")
    )))
}

/// Runs the startup checks of a live service: the secrets contain no role keys, and the contracts
/// match `deployment.json` and this binary. If no node responds, the service starts without
/// trading, and the contracts are checked at its next start.
pub async fn check_live(config: &ResolvedConfig, chain: &Chain, secrets: &Secrets) -> Result<(), StartError> {
    let held = secrets.roles.present();
    if !held.is_empty() {
        return Err(StartError::Other(format!(
            "{} contains keys of roles ({}), which a live service must not have. Move them to the holders of the roles.",
            config.secrets_file.display(),
            held.join(", ")
        )));
    }
    let recorded = read(&config.deployment)?.ok_or_else(|| {
        StartError::Other(format!(
            "there is no {}: a live service compares the contracts with it. Copy it from the machine on which `foretell deploy` ran.",
            config.deployment.display()
        ))
    })?;
    match check(chain, &recorded.settings()).await {
        // Only an unreachable chain is tolerated. A reachable chain with other contracts is fatal.
        Err(StartError::Chain(error @ (ChainError::Unreachable(_) | ChainError::Inconsistent(_)))) => {
            tracing::error!(%error, "could not check the contracts: no node answers");
            Ok(())
        }
        checked => checked,
    }
}
