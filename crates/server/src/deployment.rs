//! `deployment.json` in the data folder: what `foretell deploy` did. It is written before there may be a database, and
//! entered into the audit log once there is one.

use std::path::{Path, PathBuf};

use alloy_primitives::Address;
use chain::{Contracts, DeploySettings};
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use store::audit_log::Actor;

use crate::run::StartError;

/// A deployment of the contracts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    at: Timestamp,
    actor: String,
    os_user: String,
    host: String,
    chain_id: u64,
    contracts: Contracts,
    resolver: Address,
    guardian: Address,
    treasury: Address,
    executors: Vec<Address>,
    hourly_volume_cap_usdc_atomic: u64,
    listing_delay_s: u32,
    veto_window_s: u32,
}

impl Deployment {
    /// The deployment of these contracts by `actor`.
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
            resolver: settings.resolver,
            guardian: settings.guardian,
            treasury: settings.treasury,
            executors: settings.executors.clone(),
            hourly_volume_cap_usdc_atomic: settings.hourly_volume_cap_usdc_atomic,
            listing_delay_s: settings.listing_delay_s,
            veto_window_s: settings.veto_window_s,
        }
    }

    /// The chain's id, if it is the deployment of these contracts.
    pub fn chain_of(&self, contracts: &Contracts) -> Option<u64> {
        (self.contracts == *contracts).then_some(self.chain_id)
    }

    /// The address of the Gate, by which a deployment is known.
    pub fn gate(&self) -> String {
        self.contracts.gate.to_string().to_lowercase()
    }

    /// The id of the chain.
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// What the contracts were deployed with. The token is the one that they name.
    pub fn settings(&self) -> DeploySettings {
        DeploySettings {
            usdc: Some(self.contracts.usdc),
            resolver: self.resolver,
            guardian: self.guardian,
            treasury: self.treasury,
            executors: self.executors.clone(),
            hourly_volume_cap_usdc_atomic: self.hourly_volume_cap_usdc_atomic,
            listing_delay_s: self.listing_delay_s,
            veto_window_s: self.veto_window_s,
        }
    }

    /// The actor that made it.
    pub fn actor(&self) -> Actor {
        Actor { name: self.actor.clone(), os_user: self.os_user.clone(), host: self.host.clone() }
    }

    /// Writes it into a data folder.
    pub fn write(&self, data_dir: &Path) -> Result<(), StartError> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        let path = path(data_dir);
        std::fs::write(&path, text + "\n")
            .map_err(|source| StartError::File { path: path.display().to_string(), source })
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("deployment.json")
}

/// The deployment that was made from this data folder, if there was one.
pub fn read(data_dir: &Path) -> Result<Option<Deployment>, StartError> {
    let path = path(data_dir);
    let name = path.display().to_string();
    match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| StartError::Other(format!("{name} cannot be read: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StartError::File { path: name, source }),
    }
}
