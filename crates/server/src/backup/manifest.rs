//! The manifest of a backup: what it holds, and how that is checked.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use alloy_primitives::hex;
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::run::StartError;

/// Raised when the files of a backup change their meaning.
pub const FORMAT: u32 = 1;
/// The manifest's name in a backup. It is written last: a backup without it is incomplete.
const NAME: &str = "manifest.json";

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The form of the backup.
    pub format: u32,
    /// The version of the program that made it.
    pub version: String,
    /// When it was begun.
    pub created_at: Timestamp,
    /// The database, unless it is on a server.
    pub database: Option<DatabasePart>,
    /// The chain, if it is embedded.
    pub chain: Option<ChainPart>,
    /// Every file.
    pub files: Vec<FilePart>,
}

/// A database in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DatabasePart {
    /// The last block that it has read.
    pub block: Option<u64>,
    /// That block's hash.
    pub block_hash: Option<String>,
}

/// A chain in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChainPart {
    /// Its id.
    pub chain_id: u64,
    /// Its newest block.
    pub head: u64,
    /// That block's hash.
    pub hash: String,
}

/// A file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePart {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
}

impl FilePart {
    /// The file of this name in a folder.
    pub fn of(folder: &Path, name: &str) -> Result<Self, StartError> {
        let path = folder.join(name);
        let (bytes, sha256) = digest(&path)?;
        Ok(Self { name: name.to_owned(), bytes, sha256 })
    }
}

impl Manifest {
    /// Reads the manifest of a backup.
    pub fn read(folder: &Path) -> Result<Self, StartError> {
        let path = folder.join(NAME);
        let text = std::fs::read_to_string(&path).map_err(|source| failed(&path, source))?;
        let manifest: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| StartError::Other(format!("{} is not a manifest: {error}", path.display())))?;
        let format = manifest.get("format").and_then(serde_json::Value::as_u64);
        if format != Some(FORMAT.into()) {
            let version = manifest.get("version").and_then(serde_json::Value::as_str).unwrap_or("unknown");
            return Err(StartError::Other(format!(
                "the backup was made by version {version} in another form; this program reads form {FORMAT}"
            )));
        }
        serde_json::from_value(manifest)
            .map_err(|error| StartError::Other(format!("{} is not a manifest: {error}", path.display())))
    }

    /// Writes the manifest into a backup.
    pub fn write(&self, folder: &Path) -> Result<(), StartError> {
        let path = folder.join(NAME);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        crate::secrets::write_private(&path, &text).map_err(|source| failed(&path, source))
    }

    /// Whether the backup has a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// Checks that every file is there and is what was written.
    pub fn check_files(&self, folder: &Path) -> Result<(), StartError> {
        for file in &self.files {
            let path = folder.join(&file.name);
            let (bytes, sha256) = digest(&path)?;
            if (bytes, &sha256) != (file.bytes, &file.sha256) {
                return Err(StartError::Other(format!(
                    "{} is not the file that was backed up: its SHA-256 is {sha256}, and the manifest has {}",
                    path.display(),
                    file.sha256
                )));
            }
        }
        Ok(())
    }
}

/// The size and the SHA-256 of a file.
fn digest(path: &Path) -> Result<(u64, String), StartError> {
    let mut file = File::open(path).map_err(|source| failed(path, source))?;
    let (mut hasher, mut buffer, mut bytes) = (Sha256::new(), vec![0; 1 << 20], 0);
    loop {
        let read = file.read(&mut buffer).map_err(|source| failed(path, source))?;
        let Some(some) = buffer.get(..read).filter(|some| !some.is_empty()) else { break };
        hasher.update(some);
        bytes += some.len() as u64;
    }
    Ok((bytes, hex::encode(hasher.finalize())))
}

/// A file that cannot be read or written.
pub fn failed(path: &Path, source: std::io::Error) -> StartError {
    StartError::File { path: path.display().to_string(), source }
}
