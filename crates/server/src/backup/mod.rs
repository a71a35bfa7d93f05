//! Backups of what a service keeps in its data folder, and restoring them.
//!
//! The database is copied first and the chain after it: the chain in a backup may be newer than the database, never older.
//! A service may run meanwhile.

mod manifest;
mod restore;

use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use chain::embedded::file;
use domain::Timestamp;

pub use manifest::{ChainPart, DatabasePart, FORMAT, FilePart, Manifest};
pub use restore::{Replace, Restored, restore};

use crate::config::Config;
use crate::run::StartError;
use manifest::failed;

/// The names of files in a backup.
const DATABASE: &str = "foretell.db";
const CHAIN: &str = "chain.db";
const SECRETS: &str = "secrets.json";
const CONTRACTS: &str = "contracts.json";
const DEPLOYMENT: &str = "deployment.json";

/// The files of a service, by their names in a backup.
fn places(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let mut places = vec![
        (CHAIN, config.data_dir.join(CHAIN)),
        (SECRETS, config.secrets_file.clone()),
        (CONTRACTS, config.contracts.clone()),
        (DEPLOYMENT, config.data_dir.join(DEPLOYMENT)),
    ];
    places.extend(database_file(config).map(|path| (DATABASE, path)));
    places
}

/// The file of the database; `None` if it is on a server.
pub fn database_file(config: &Config) -> Option<PathBuf> {
    let path = config.database_url.strip_prefix("sqlite:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// Copies a service's files into the new folder `to`, and checks the copies.
pub fn backup(config: &Config, now: Timestamp, to: &Path) -> Result<Manifest, StartError> {
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
    manifest.write(to)?;
    Ok(manifest)
}

/// Makes the new folder of a backup, for its owner only.
fn make_folder(folder: &Path) -> Result<(), StartError> {
    let is_taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken {
        return Err(StartError::Other(format!(
            "{} is not empty: a backup needs a folder of its own",
            folder.display()
        )));
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
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

/// Checks that the chain's file has the last block that the backup's database has read.
fn check_chain(manifest: &Manifest, chain: &Path) -> Result<(), StartError> {
    let read = manifest.database.as_ref().and_then(|part| part.block.zip(part.block_hash.as_ref()));
    let Some((block, hash)) = read.filter(|_| chain.exists()) else { return Ok(()) };
    match file::block_hash(chain, block)? {
        Some(found) if found.to_string() == *hash => Ok(()),
        Some(_) => Err(StartError::Other(format!(
            "{} is another chain than the one that the database has read: block {block} differs",
            chain.display()
        ))),
        None => Err(StartError::Other(format!(
            "{} is older than the database, which has read block {block}",
            chain.display()
        ))),
    }
}
