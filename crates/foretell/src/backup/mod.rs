//! Backups of a service's data folder, and their restoration.
//!
//! The database is copied before the chain. The chain in a backup may therefore be newer than the
//! database, but never older. The service may run during a backup.

mod manifest;
mod restore;

use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use domain::Timestamp;
use embedded_chain::file;
use secrecy::ExposeSecret;

pub use manifest::{ChainPart, DatabasePart, FORMAT, FilePart, Manifest};
pub use restore::{Replace, Restored, restore};

use crate::config::ResolvedConfig;
use crate::start_error::StartError;
use manifest::failed;

/// File names in a backup.
const DATABASE: &str = "foretell.db";
const CHAIN: &str = "chain.db";
const SECRETS: &str = "secrets.json";
const CONTRACTS: &str = "contracts.json";
const DEPLOYMENT: &str = "deployment.json";

/// Returns the files of a service, by their names in a backup.
fn places(config: &ResolvedConfig) -> Vec<(&'static str, PathBuf)> {
    let mut places = vec![
        (CHAIN, config.data_dir.join(CHAIN)),
        (SECRETS, config.secrets_file.clone()),
        (CONTRACTS, config.contracts.clone()),
        (DEPLOYMENT, config.data_dir.join(DEPLOYMENT)),
    ];
    places.extend(database_file(config).map(|path| (DATABASE, path)));
    places
}

/// Returns the database file, or `None` if the database is on a server.
pub fn database_file(config: &ResolvedConfig) -> Option<PathBuf> {
    let path = config.database_url.expose_secret().strip_prefix("sqlite:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// Copies a service's files into the new folder `to`, and checks the copies.
pub fn backup(config: &ResolvedConfig, now: Timestamp, to: &Path) -> Result<Manifest, StartError> {
    make_folder(to)?;
    let mut manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: now,
        database: None,
        chain: None,
        files: Vec::new(),
    };
    if let Some(from) = database_file(config) {
        let copy = to.join(DATABASE);
        // A consistent copy even while the service writes, which a plain file copy would not be.
        store::backup::copy_sqlite(&from, &copy)?;
        let last = store::backup::last_block(&copy)?;
        let (block, block_hash) = last.unzip();
        manifest.database = Some(DatabasePart { block, block_hash });
    }
    for (name, from) in places(config) {
        if name == CHAIN && from.exists() {
            let file::ChainFile { chain_id, head, hash } = file::copy_file(&from, &to.join(CHAIN))?;
            manifest.chain = Some(ChainPart { chain_id, head, hash: hash.to_string() });
        } else if name != DATABASE && name != CHAIN && from.exists() {
            let copy = to.join(name);
            fs::copy(&from, &copy).map_err(|source| failed(&from, source))?;
        }
    }
    for (name, _) in places(config) {
        let copy = to.join(name);
        if copy.exists() {
            keep_private(&copy)?;
            manifest.files.push(FilePart::of(to, name)?);
        }
    }
    check_chain(&manifest, &to.join(CHAIN))?;
    // The manifest is written last: an interrupted backup has none and cannot be restored.
    manifest.write(to)?;
    Ok(manifest)
}

/// Creates the folder of a backup, accessible only to its owner.
fn make_folder(folder: &Path) -> Result<(), StartError> {
    // Mixing with files of another backup would produce a manifest with wrong files.
    let is_taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken {
        return Err(StartError::Other(format!(
            "{} is not empty: a backup needs its own folder",
            folder.display()
        )));
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    // `DirBuilder` does not change the mode of an existing folder.
    made.and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)))
        .map_err(|source| failed(folder, source))
}

/// Makes a file durable, and readable only by its owner.
fn keep_private(path: &Path) -> Result<(), StartError> {
    let keep = || {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        fs::File::open(path)?.sync_all()
    };
    keep().map_err(|source| failed(path, source))
}

/// Checks that the chain file contains the last block that the database has processed.
fn check_chain(manifest: &Manifest, chain: &Path) -> Result<(), StartError> {
    let read = manifest.database.as_ref().and_then(|part| part.block.zip(part.block_hash.as_ref()));
    let Some((block, hash)) = read.filter(|_| chain.exists()) else { return Ok(()) };
    match file::block_hash(chain, block)? {
        Some(found) if found.to_string() == *hash => Ok(()),
        Some(_) => Err(StartError::Other(format!(
            "{} is not the chain that the database has read: block {block} differs",
            chain.display()
        ))),
        None => Err(StartError::Other(format!(
            "{} is older than the database, which has read block {block}",
            chain.display()
        ))),
    }
}
