//! `owners.json`: private keys of accounts' owners, by user id. Development alone: there the service's machine may play the
//! owner too, so that a new key can trade at once.

use std::collections::BTreeMap;
use std::path::Path;

use chain::Signer;
use domain::ids::UserId;

use crate::dev::OWNERS_FILE;
use crate::run::StartError;
use crate::secrets::write_private;

/// The owner's key of a user, where it lies in the data folder.
pub fn find(data_dir: &Path, user_id: UserId) -> Result<Option<Signer>, StartError> {
    let key = read(data_dir)?.remove(&user_id.to_string());
    Ok(key.as_deref().map(Signer::from_hex).transpose()?)
}

/// Keeps the owner's key of a user.
pub fn add(data_dir: &Path, user_id: UserId, owner: &Signer) -> Result<(), StartError> {
    let mut owners = read(data_dir)?;
    owners.insert(user_id.to_string(), hex::encode(owner.to_bytes()));
    let path = data_dir.join(OWNERS_FILE);
    let text = serde_json::to_string_pretty(&owners).unwrap_or_default();
    write_private(&path, &text)
        .map_err(|source| StartError::File { path: path.display().to_string(), source })
}

fn read(data_dir: &Path) -> Result<BTreeMap<String, String>, StartError> {
    let path = data_dir.join(OWNERS_FILE);
    let name = path.display().to_string();
    match std::fs::read_to_string(&path) {
        // The parser's own words could quote a key.
        Ok(text) => serde_json::from_str(&text)
            .map_err(|_| StartError::Other(format!("{name} holds no owners' keys"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(source) => Err(StartError::File { path: name, source }),
    }
}
