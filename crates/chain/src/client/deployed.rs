//! Compares the contracts on a chain with those that this program would deploy: code, roles and
//! settings.

use std::collections::BTreeMap;

use alloy::providers::Provider;
use alloy_primitives::{Address, B256, keccak256};

use super::chain::{Chain, Contracts};
use super::deploy::DeploySettings;
use crate::bindings::{Account, AccountFactory, Authority, Gate, MarketHub};
use crate::error::ChainError;

/// The opcode before an immutable value, for which the compiler leaves 32 zero bytes.
const PUSH32: u8 = 0x7f;
const WORD: usize = 32;

impl Chain {
    /// Returns the differences between the contracts on chain and those that this program would
    /// deploy with `expected`: code (without immutables), roles and settings. Each difference is a
    /// sentence. The list is empty if everything matches.
    pub async fn deployment_differences(&self, expected: &DeploySettings) -> Result<Vec<String>, ChainError> {
        let mut differences = self.code_differences().await?;
        // The settings of unknown code mean nothing: compare them only if the code matches.
        if differences.is_empty() {
            differences.extend(self.authority_differences(expected).await?);
            differences.extend(self.hub_differences(expected).await?);
            differences.extend(self.gate_differences(expected).await?);
        }
        Ok(differences)
    }

    /// Returns `expected` with the roles, executors and hourly caps that are on chain now. The
    /// delays are not read.
    pub async fn deployed_settings(&self, expected: &DeploySettings) -> Result<DeploySettings, ChainError> {
        let (seats, executors) = tokio::try_join!(self.seats(), self.executors())?;
        let [owner, resolver, guardian, treasury] = seats.all.map(|seat| seat.holder);
        let mut other_hourly_caps = BTreeMap::new();
        for executor in &executors {
            let cap = self.executor_volume(*executor).await?.cap_usdc_atomic;
            if cap != expected.hourly_volume_cap_usdc_atomic {
                other_hourly_caps.insert(*executor, cap);
            }
        }
        Ok(DeploySettings {
            owner,
            resolver,
            guardian,
            treasury,
            executors,
            other_hourly_caps,
            ..expected.clone()
        })
    }

    async fn code_differences(&self) -> Result<Vec<String>, ChainError> {
        let Contracts { authority, hub, gate, account_factory, .. } = self.contracts;
        let mut differences = Vec::new();
        let contracts = [
            ("Authority", authority, &Authority::DEPLOYED_BYTECODE),
            ("MarketHub", hub, &MarketHub::DEPLOYED_BYTECODE),
            ("Gate", gate, &Gate::DEPLOYED_BYTECODE),
            ("AccountFactory", account_factory, &AccountFactory::DEPLOYED_BYTECODE),
        ];
        for (name, address, code) in contracts {
            differences.extend(self.code_difference(name, address, code).await?);
        }
        // The account's address comes from the factory, so read it only if the factory's code
        // matches.
        if differences.is_empty() {
            let account = self.view(account_factory, AccountFactory::implementationCall {}).await?;
            differences.extend(self.code_difference("Account", account, &Account::DEPLOYED_BYTECODE).await?);
        }
        Ok(differences)
    }

    async fn code_difference(
        &self,
        name: &str,
        address: Address,
        expected: &[u8],
    ) -> Result<Option<String>, ChainError> {
        let found = self.provider.get_code_at(address).await.map_err(ChainError::of_read)?;
        if found.is_empty() {
            return Ok(Some(format!("there is no contract {name} at {address}")));
        }
        let (expected_hash, found_hash) = (code_hash(expected, expected), code_hash(expected, &found));
        Ok((expected_hash != found_hash).then(|| {
            format!(
                "the code of {name} at {address} differs from this program's: found {found_hash}, expected {expected_hash}"
            )
        }))
    }

    async fn hub_differences(&self, expected: &DeploySettings) -> Result<Vec<String>, ChainError> {
        let hub = self.contracts.hub;
        let settings = self.view(hub, MarketHub::settingsCall {}).await?;
        Ok([
            differs("the hub's listing delay in seconds", settings.listingDelay, expected.listing_delay_s),
            differs("the hub's veto window in seconds", settings.vetoWindow, expected.veto_window_s),
            differs("the hub's minimum freeze in seconds", settings.minFreeze, expected.min_freeze_s),
            differs("the hub's reference period in seconds", settings.period, expected.reference_period_s),
            differs(
                "the hub's deadline of results in seconds",
                settings.resultDeadline,
                expected.result_deadline_s,
            ),
        ]
        .into_iter()
        .flatten()
        .collect())
    }

    async fn authority_differences(&self, expected: &DeploySettings) -> Result<Vec<String>, ChainError> {
        // A suspended resolver is still the holder: a suspension must not keep the service from
        // starting.
        let seats = self.seats().await?;
        let [owner, resolver, guardian, treasury] = seats.all.map(|seat| seat.holder);
        Ok([
            differs("the owner", owner, expected.owner),
            differs("the resolver", resolver, expected.resolver),
            differs("the guardian", guardian, expected.guardian),
            differs("the treasury", treasury, expected.treasury),
            differs("the delay of roles in seconds", seats.delay_s, expected.role_delay_s),
        ]
        .into_iter()
        .flatten()
        .collect())
    }

    /// Reports missing executors, unexpected executors and caps that differ.
    async fn gate_differences(&self, expected: &DeploySettings) -> Result<Vec<String>, ChainError> {
        let found = self.executors().await?;
        let mut differences = Vec::new();
        for executor in &expected.executors {
            if !found.contains(executor) {
                differences.push(format!("{executor} is not an executor of the Gate"));
            }
        }
        for executor in found {
            if !expected.executors.contains(&executor) {
                differences.push(format!("{executor} is an unexpected executor of the Gate"));
            }
            let cap = self.executor_volume(executor).await?.cap_usdc_atomic;
            let what = format!("the hourly cap of executor {executor} in millionths of a USDC");
            differences.extend(differs(&what, cap, expected.hourly_cap_of(executor)));
        }
        Ok(differences)
    }
}

fn differs<T: PartialEq + std::fmt::Display>(what: &str, found: T, expected: T) -> Option<String> {
    (found != expected).then(|| format!("{what} is {found}, not {expected}"))
}

/// The hash of a contract's code with the immutables set to zero. `template` is the compiled code,
/// which shows the position of each immutable.
fn code_hash(template: &[u8], code: &[u8]) -> B256 {
    let mut code = code.to_vec();
    let mut at = 0;
    while let Some(word) = template.get(at + 1..at + 1 + WORD) {
        if template.get(at) == Some(&PUSH32) && word.iter().all(|byte| *byte == 0) {
            if let Some(immutable) = code.get_mut(at + 1..at + 1 + WORD) {
                immutable.fill(0);
            }
            at += WORD;
        }
        at += 1;
    }
    keccak256(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_compared_without_its_immutables() {
        let template = [&[0x60, PUSH32][..], &[0; 32], &[0x01]].concat();
        let deployed = [&[0x60, PUSH32][..], &[7; 32], &[0x01]].concat();
        let other = [&[0x61, PUSH32][..], &[7; 32], &[0x01]].concat();
        let longer = [&deployed[..], &[0]].concat();
        assert_eq!(code_hash(&template, &deployed), code_hash(&template, &template));
        assert_ne!(code_hash(&template, &other), code_hash(&template, &template));
        assert_ne!(code_hash(&template, &longer), code_hash(&template, &template));
    }
}
