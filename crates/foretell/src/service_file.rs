//! `service.json` in the data folder: the endpoints of a running service, for the admin commands
//! and for people.

use std::path::{Path, PathBuf};

use chain::Contracts;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::config::{EnvironmentSetting, ResolvedConfig, WebhookTargets};
use crate::run::Parts;
use crate::start_error::StartError;

/// Endpoints and settings of a running service.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceFile {
    /// Environment of the API keys that the service accepts.
    pub environment: EnvironmentSetting,
    /// Base URL of the HTTP API, if the process serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// URL of the chain's JSON-RPC: the first node's, or that of the Unix socket in the data
    /// folder.
    pub rpc_url: String,
    /// URL of the operator's listener, unless it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_url: Option<String>,
    /// JSON-RPC URLs of the other nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_rpc_urls: Vec<String>,
    /// Chain id, or 0 if no node has responded yet.
    pub chain_id: u64,
    pub contracts: Contracts,
    /// Allowed webhook targets.
    #[serde(default)]
    pub webhook_targets: Option<WebhookTargets>,
}

impl ServiceFile {
    /// Describes a process that serves the API at `base_url`, if at all. `embedded_rpc_url` is used if
    /// it has no nodes.
    pub fn new(
        parts: &Parts,
        config: &ResolvedConfig,
        base_url: Option<String>,
        embedded_rpc_url: &str,
    ) -> Self {
        Self {
            environment: config.environment,
            base_url,
            // Admin commands use the first node. The others are for failover.
            rpc_url: config.rpc_urls.first().map_or(embedded_rpc_url, SecretString::expose_secret).to_owned(),
            ops_url: None,
            other_rpc_urls: config
                .rpc_urls
                .iter()
                .skip(1)
                .map(|url| url.expose_secret().to_owned())
                .collect(),
            chain_id: parts.ctx.chain.chain_id(),
            contracts: parts.ctx.chain.contracts().clone(),
            webhook_targets: Some(config.targets()),
        }
    }

    /// Adds the URL of the operator's listener.
    #[must_use]
    pub fn at_ops(self, ops_url: Option<String>) -> Self {
        Self { ops_url, ..self }
    }

    /// Returns the file's path in a data folder.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("service.json")
    }

    /// Writes the file, readable only by its owner because a node URL may contain an access key.
    pub fn write(&self, data_dir: &Path) -> Result<(), StartError> {
        let path = Self::path(data_dir);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        crate::secrets::write_private(&path, &text)
            .map_err(|source| StartError::File { path: path.display().to_string(), source })
    }

    pub fn read(data_dir: &Path) -> Result<Self, StartError> {
        let path = Self::path(data_dir);
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|source| StartError::File { path: name.clone(), source })?;
        serde_json::from_str(&text)
            .map_err(|error| StartError::Other(format!("{name} cannot be read: {error}")))
    }
}
