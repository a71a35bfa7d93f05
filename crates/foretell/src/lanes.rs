//! The executors' addresses, in the order of their lanes. A process without their keys gives them
//! lanes too, so that it can assign trades before an executor has started.

use alloy_primitives::Address;
use chain::Signer;

use crate::config::ResolvedConfig;
use crate::deployment;
use crate::secrets::Secrets;
use crate::start_error::StartError;

/// Returns the addresses of the keys or, in a process without keys, those of `deployment.json`.
/// Executors that were added later are read from the database.
pub fn addresses(config: &ResolvedConfig, secrets: &Secrets) -> Result<Vec<Address>, StartError> {
    let of_keys: Vec<Address> = secrets.executors()?.iter().map(Signer::address).collect();
    if !of_keys.is_empty() {
        return Ok(of_keys);
    }
    let recorded = deployment::read(&config.deployment)?;
    Ok(recorded.map(|recorded| recorded.executors().to_vec()).unwrap_or_default())
}
