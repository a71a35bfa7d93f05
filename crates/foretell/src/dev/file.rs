//! `dev.json`: everything that is needed to try the demonstration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use app::config::SampleUser;
use chain::{AccountOwner, Contracts, Signer};
use serde::{Deserialize, Serialize};

use crate::secrets::write_private;
use crate::start_error::StartError;

/// File with the private keys of the sample account owners, by user id. Only for development: a
/// real service never has these keys.
pub const OWNERS_FILE: &str = "owners.json";

/// The contents of `dev.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevFile {
    /// Base URL of the HTTP API.
    pub base_url: String,
    /// URL of the embedded chain's JSON-RPC.
    pub rpc_url: String,
    pub chain_id: u64,
    pub contracts: Contracts,
    /// The users. The first one has a key of every tier.
    pub users: Vec<DevUser>,
    pub markets: Vec<DevMarket>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevUser {
    pub name: String,
    pub user_id: String,
    /// Address of the smart account.
    pub address: String,
    /// Owners of the smart account. Their private keys are in `owners.json`.
    #[serde(default)]
    pub owners: Vec<AccountOwner>,
    /// API keys in plaintext, which is acceptable only in a demonstration.
    pub keys: Vec<DevKey>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevKey {
    pub name: String,
    pub tier: String,
    pub scopes: Vec<String>,
    /// The plaintext key.
    pub key: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevMarket {
    pub id: String,
    pub question: String,
    pub status: String,
    pub outcomes: Vec<String>,
}

impl DevFile {
    /// Returns the file's path in a data folder.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("dev.json")
    }

    /// Reads the file, or returns `None` if it does not exist.
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

    /// Writes the file, readable only by its owner.
    pub fn write(&self, data_dir: &Path) -> Result<(), StartError> {
        write_json(&Self::path(data_dir), self)
    }
}

/// Writes the owners' private keys, by user id.
pub fn write_owners(data_dir: &Path, owners: &BTreeMap<String, Vec<String>>) -> Result<(), StartError> {
    write_json(&data_dir.join(OWNERS_FILE), owners)
}

/// Returns the sample users with the keys of their owners. Users whose keys were deleted are left out.
pub fn read_sample_users(data_dir: &Path, users: &[DevUser]) -> Result<Vec<SampleUser>, StartError> {
    let path = data_dir.join(OWNERS_FILE);
    let fail = |error: &dyn std::fmt::Display| {
        StartError::Other(format!("{} cannot be read: {error}; start with --reset", path.display()))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| fail(&error))?;
    let owners: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).map_err(|error| fail(&error))?;
    let mut sample = Vec::new();
    for user in users {
        let Some(key) = owners.get(&user.user_id).and_then(|keys| keys.first()) else { continue };
        let owner = Signer::from_hex(key).map_err(|error| fail(&error))?;
        let user_id = user.user_id.parse().map_err(|error| fail(&error))?;
        sample.push(SampleUser { name: user.name.clone(), user_id, owner });
    }
    Ok(sample)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StartError> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    write_private(path, &text).map_err(|source| StartError::File { path: path.display().to_string(), source })
}
