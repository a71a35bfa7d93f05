//! `service.json` in the data folder: where a running service is found, for the admin tool and for people.

use std::path::{Path, PathBuf};

use chain::Contracts;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Environment, WebhookTargets};
use crate::run::{Parts, StartError};

/// Where a running service is found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceFile {
    /// Which keys belong to it.
    pub environment: Environment,
    /// The address of its HTTP surface.
    pub base_url: String,
    /// The URL of its chain's JSON-RPC: the node's, or that of the socket in the data folder.
    pub rpc_url: String,
    /// Those of its other nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_rpc_urls: Vec<String>,
    /// That chain's id; 0 if no node has been seen yet.
    pub chain_id: u64,
    /// The contracts' addresses.
    pub contracts: Contracts,
    /// Where its webhooks may go.
    #[serde(default)]
    pub webhook_targets: Option<WebhookTargets>,
}

impl ServiceFile {
    /// What is to be known of a service that serves at `base_url` and whose embedded chain, if it has one, is at
    /// `embedded_rpc_url`.
    pub fn new(parts: &Parts, config: &Config, base_url: &str, embedded_rpc_url: &str) -> Self {
        Self {
            environment: config.environment,
            base_url: base_url.to_owned(),
            rpc_url: config.rpc_urls.first().map_or(embedded_rpc_url, String::as_str).to_owned(),
            other_rpc_urls: config.rpc_urls.iter().skip(1).cloned().collect(),
            chain_id: parts.ctx.chain.chain_id(),
            contracts: parts.ctx.chain.contracts().clone(),
            webhook_targets: Some(config.targets()),
        }
    }

    /// The file in a data folder.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("service.json")
    }

    /// Writes the file; the node's address may hold an access key, so only its owner can read it.
    pub fn write(&self, data_dir: &Path) -> Result<(), StartError> {
        let path = Self::path(data_dir);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        crate::secrets::write_private(&path, &text)
            .map_err(|source| StartError::File { path: path.display().to_string(), source })
    }

    /// Reads the file.
    pub fn read(data_dir: &Path) -> Result<Self, StartError> {
        let path = Self::path(data_dir);
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|source| StartError::File { path: name.clone(), source })?;
        serde_json::from_str(&text)
            .map_err(|error| StartError::Other(format!("{name} cannot be read: {error}")))
    }
}
