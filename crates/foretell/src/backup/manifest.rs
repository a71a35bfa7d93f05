//! The manifest of a backup: its contents, with checksums.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use alloy_primitives::hex;
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::start_error::StartError;

/// Version of the backup format. Increment it if the meaning of the files changes.
pub const FORMAT: u32 = 1;
/// The manifest's file name. It is written last, so a backup without it is incomplete.
const NAME: &str = "manifest.json";

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    /// Version of the program that made the backup.
    pub version: String,
    pub created_at: Timestamp,
    /// The database, unless it is on a server.
    pub database: Option<DatabasePart>,
    /// The chain, if it is embedded.
    pub chain: Option<ChainPart>,
    pub files: Vec<FilePart>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DatabasePart {
    /// Number of the last processed block.
    pub block: Option<u64>,
    /// Hash of the last processed block.
    pub block_hash: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChainPart {
    pub chain_id: u64,
    /// Number of the newest block.
    pub head: u64,
    /// Hash of the newest block.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePart {
    pub name: String,
    pub bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

impl FilePart {
    /// Reads the size and checksum of a file.
    pub fn of(folder: &Path, name: &str) -> Result<Self, StartError> {
        let path = folder.join(name);
        let (bytes, sha256) = digest(&path)?;
        Ok(Self { name: name.to_owned(), bytes, sha256 })
    }
}

impl Manifest {
    /// Reads the manifest of a backup. Checks the format first, because other formats may not
    /// parse.
    pub fn read(folder: &Path) -> Result<Self, StartError> {
        let path = folder.join(NAME);
        let text = std::fs::read_to_string(&path).map_err(|source| failed(&path, source))?;
        // Parse loosely first, because another format may have other members.
        let manifest: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| StartError::Other(format!("{} is not a manifest: {error}", path.display())))?;
        let format = manifest.get("format").and_then(serde_json::Value::as_u64);
        if format != Some(FORMAT.into()) {
            let version = manifest.get("version").and_then(serde_json::Value::as_str).unwrap_or("unknown");
            return Err(StartError::Other(format!(
                "the backup was made by version {version} in another format: this program reads format {FORMAT}"
            )));
        }
        serde_json::from_value(manifest)
            .map_err(|error| StartError::Other(format!("{} is not a manifest: {error}", path.display())))
    }

    pub fn write(&self, folder: &Path) -> Result<(), StartError> {
        let path = folder.join(NAME);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        crate::secrets::write_private(&path, &text).map_err(|source| failed(&path, source))
    }

    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// Checks that all files exist and match their checksums.
    pub fn check_files(&self, folder: &Path) -> Result<(), StartError> {
        for file in &self.files {
            let path = folder.join(&file.name);
            let (bytes, sha256) = digest(&path)?;
            if (bytes, &sha256) != (file.bytes, &file.sha256) {
                return Err(StartError::Other(format!(
                    "{} is not the file that was backed up: its SHA-256 is {sha256}, but the manifest has {}",
                    path.display(),
                    file.sha256
                )));
            }
        }
        Ok(())
    }
}

/// Returns the size and the SHA-256 of a file.
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

/// Wraps an I/O error with its path.
pub fn failed(path: &Path, source: std::io::Error) -> StartError {
    StartError::File { path: path.display().to_string(), source }
}
