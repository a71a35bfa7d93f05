//! `owners.json`: private keys of account owners, by user id. Only for development: there the
//! service's machine may also act as the owner, so that a new key can trade at once.

use std::collections::BTreeMap;
use std::path::Path;

use chain::Signer;
use domain::ids::UserId;

use crate::dev::{OWNERS_FILE, write_owners};
use crate::start_error::StartError;

/// Returns a user's owner keys in the data folder. They may include keys of removed owners.
pub fn find(data_dir: &Path, user_id: UserId) -> Result<Vec<Signer>, StartError> {
    let keys = read(data_dir)?.remove(&user_id.to_string()).unwrap_or_default();
    keys.iter().map(|key| Ok(Signer::from_hex(key)?)).collect()
}

/// Adds an owner key of a user to the stored ones.
pub fn add(data_dir: &Path, user_id: UserId, owner: &Signer) -> Result<(), StartError> {
    let mut owners = read(data_dir)?;
    owners.entry(user_id.to_string()).or_default().push(hex::encode(owner.to_bytes()));
    write_owners(data_dir, &owners)
}

fn read(data_dir: &Path) -> Result<BTreeMap<String, Vec<String>>, StartError> {
    let path = data_dir.join(OWNERS_FILE);
    let name = path.display().to_string();
    match std::fs::read_to_string(&path) {
        // The parser's own message could quote a key.
        Ok(text) => serde_json::from_str(&text)
            .map_err(|_| StartError::Other(format!("{name} does not contain owner keys"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(source) => Err(StartError::File { path: name, source }),
    }
}
