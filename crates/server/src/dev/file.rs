//! `dev.json`: all that a person or a program needs to try the demonstration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chain::Contracts;
use serde::{Deserialize, Serialize};

use crate::run::StartError;
use crate::secrets::write_private;

/// The file of the demonstration owners' private keys, by user id. Development alone: a service never holds such keys.
pub const OWNERS_FILE: &str = "owners.json";

/// The demonstration, as `dev.json` tells it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevFile {
    /// The address of the HTTP surface.
    pub base_url: String,
    /// The address of the embedded chain's JSON-RPC.
    pub rpc_url: String,
    /// The embedded chain's id.
    pub chain_id: u64,
    /// The contracts' addresses.
    pub contracts: Contracts,
    /// The users, the one with a key of every tier first.
    pub users: Vec<DevUser>,
    /// The markets.
    pub markets: Vec<DevMarket>,
}

/// A user of the demonstration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevUser {
    /// The user's name.
    pub name: String,
    /// The user's id.
    pub user_id: String,
    /// The smart account.
    pub address: String,
    /// The user's keys, in plaintext: this is a demonstration.
    pub keys: Vec<DevKey>,
}

/// A key of the demonstration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevKey {
    /// The key's label.
    pub name: String,
    /// Its tier.
    pub tier: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// The key itself.
    pub key: String,
}

/// A market of the demonstration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevMarket {
    /// The market's id.
    pub id: String,
    /// What is asked.
    pub question: String,
    /// Where it stands.
    pub status: String,
    /// The outcomes' names.
    pub outcomes: Vec<String>,
}

impl DevFile {
    /// The file in a data folder.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("dev.json")
    }

    /// Reads the file; `None` where there is none.
    pub fn read(data_dir: &Path) -> Result<Option<Self>, StartError> {
        let path = Self::path(data_dir);
        let name = path.display().to_string();
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                StartError::Other(format!("{name} cannot be read: {error}; start with --reset"))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StartError::File { path: name, source }),
        }
    }

    /// Writes the file, readable by its owner alone.
    pub fn write(&self, data_dir: &Path) -> Result<(), StartError> {
        write_json(&Self::path(data_dir), self)
    }
}

/// Writes the owners' private keys, by user id.
pub fn write_owners(data_dir: &Path, owners: &BTreeMap<String, String>) -> Result<(), StartError> {
    write_json(&data_dir.join(OWNERS_FILE), owners)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StartError> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    write_private(path, &text).map_err(|source| StartError::File { path: path.display().to_string(), source })
}
