//! The executors that a process knows without the database.

use alloy_primitives::Address;
use chain::Signer;

use crate::config::ResolvedConfig;
use crate::deployment;
use crate::secrets::Secrets;
use crate::start_error::StartError;

/// Returns the addresses of the keys, which get lanes in their order. A process without keys gives out no
/// lanes. It uses those of `deployment.json` until it finds lanes in the database.
pub fn addresses(config: &ResolvedConfig, secrets: &Secrets) -> Result<Vec<Address>, StartError> {
    let of_keys: Vec<Address> = secrets.executors()?.iter().map(Signer::address).collect();
    if !of_keys.is_empty() {
        return Ok(of_keys);
    }
    let recorded = deployment::read(&config.deployment)?;
    Ok(recorded.map(|recorded| recorded.executors().to_vec()).unwrap_or_default())
}
