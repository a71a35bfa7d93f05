//! Whether the contracts on a chain are those of this program, with the roles and settings that they should have.

use alloy::providers::Provider;
use alloy_primitives::{Address, B256, keccak256};

use super::bindings::{Account, AccountFactory, Gate, MarketHub};
use super::chain::{Chain, Contracts};
use super::deploy::DeploySettings;
use super::error::ChainError;

/// The opcode before an immutable, which the compiler leaves as 32 zeros.
const PUSH32: u8 = 0x7f;
const WORD: usize = 32;

impl Chain {
    /// What differs between the contracts on chain and what this program would deploy with `expected`: their code apart
    /// from immutables, their roles, and their settings. Each difference is a sentence; none means that all is as expected.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn deployment_differences(&self, expected: &DeploySettings) -> Result<Vec<String>, ChainError> {
        let mut differences = self.code_differences().await?;
        if differences.is_empty() {
            differences.extend(self.hub_differences(expected).await?);
            differences.extend(self.gate_differences(expected).await?);
        }
        Ok(differences)
    }

    async fn code_differences(&self) -> Result<Vec<String>, ChainError> {
        let Contracts { hub, gate, account_factory, .. } = self.contracts;
        let mut differences = Vec::new();
        let contracts = [
            ("MarketHub", hub, &MarketHub::DEPLOYED_BYTECODE),
            ("Gate", gate, &Gate::DEPLOYED_BYTECODE),
            ("AccountFactory", account_factory, &AccountFactory::DEPLOYED_BYTECODE),
        ];
        for (name, address, code) in contracts {
            differences.extend(self.code_difference(name, address, code).await?);
        }
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
            return Ok(Some(format!("there is no contract at {address}, where {name} must be")));
        }
        let (expected_hash, found_hash) = (code_hash(expected, expected), code_hash(expected, &found));
        Ok((expected_hash != found_hash).then(|| {
            format!(
                "the code of {name} at {address} is not this program's: {found_hash}, not {expected_hash}"
            )
        }))
    }

    async fn hub_differences(&self, expected: &DeploySettings) -> Result<Vec<String>, ChainError> {
        let hub = self.contracts.hub;
        let (resolver, guardian, treasury, listing_delay, veto_window) = tokio::try_join!(
            self.view(hub, MarketHub::resolverCall {}),
            self.view(hub, MarketHub::guardianCall {}),
            self.view(hub, MarketHub::treasuryCall {}),
            self.view(hub, MarketHub::listingDelayCall {}),
            self.view(hub, MarketHub::vetoWindowCall {}),
        )?;
        Ok([
            differs("the hub's resolver", resolver, expected.resolver),
            differs("the hub's guardian", guardian, expected.guardian),
            differs("the hub's treasury", treasury, expected.treasury),
            differs("the hub's listing delay in seconds", listing_delay, expected.listing_delay_s),
            differs("the hub's veto window in seconds", veto_window, expected.veto_window_s),
        ]
        .into_iter()
        .flatten()
        .collect())
    }

    async fn gate_differences(&self, expected: &DeploySettings) -> Result<Vec<String>, ChainError> {
        let gate = self.contracts.gate;
        let (guardian, cap) = tokio::try_join!(
            self.view(gate, Gate::guardianCall {}),
            self.view(gate, Gate::hourlyVolumeCapCall {}),
        )?;
        let mut differences: Vec<String> = [
            differs("the Gate's guardian", guardian, expected.guardian),
            differs(
                "the Gate's hourly volume cap in millionths of a USDC",
                cap,
                expected.hourly_volume_cap_usdc_atomic,
            ),
        ]
        .into_iter()
        .flatten()
        .collect();
        for executor in &expected.executors {
            if !self.view(gate, Gate::isExecutorCall { executor: *executor }).await? {
                differences.push(format!("{executor} is not an executor of the Gate"));
            }
        }
        Ok(differences)
    }
}

fn differs<T: PartialEq + std::fmt::Display>(what: &str, found: T, expected: T) -> Option<String> {
    (found != expected).then(|| format!("{what} is {found}, not {expected}"))
}

/// The hash of a contract's code without the immutables that `template` leaves open.
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
