//! The executors' addresses, in the order of their lanes. Every process that assigns trades to lanes
//! needs them, but only an executor has the keys.

use std::collections::BTreeSet;

use alloy_primitives::Address;
use chain::Signer;

use crate::config::ResolvedConfig;
use crate::deployment;
use crate::secrets::Secrets;
use crate::start_error::StartError;

/// Returns the addresses of the keys or, in a process without keys, those of `deployment.json`.
///
/// # Errors
/// If the process needs the addresses and has neither, or if the keys are not those of the
/// deployment although other processes assign trades to its lanes.
pub fn addresses(config: &ResolvedConfig, secrets: &Secrets) -> Result<Vec<Address>, StartError> {
    let of_keys: Vec<Address> = secrets.executors()?.iter().map(Signer::address).collect();
    if config.roles.are_all() && !of_keys.is_empty() {
        return Ok(of_keys);
    }
    let file = config.deployment.display();
    let Some(recorded) = deployment::read(&config.deployment)? else {
        return match config.roles.need_lanes() {
            false => Ok(Vec::new()),
            true => Err(StartError::Other(format!(
                "there is no {file}: a process with the roles {} reads the executors' addresses from it. Copy it from the machine on which `foretell deploy` ran.",
                config.roles
            ))),
        };
    };
    let set = |addresses: &[Address]| addresses.iter().copied().collect::<BTreeSet<_>>();
    if of_keys.is_empty() {
        return Ok(recorded.executors().to_vec());
    }
    if set(&of_keys) != set(recorded.executors()) {
        return Err(StartError::Other(format!(
            "the keys of the executors in {} are not those of the executors in {file}, so trades of other processes would wait for a lane that does not exist. Give both files the same executors.",
            config.secrets_file.display()
        )));
    }
    Ok(of_keys)
}
