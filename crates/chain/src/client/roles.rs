//! Reads of the deployment's roles and executors.

use std::fmt;
use std::str::FromStr;

use alloy::providers::Provider;
use alloy::rpc::types::Filter;
use alloy::sol_types::SolEvent;
use alloy_primitives::Address;

use super::chain::Chain;
use super::state::{ExecutorProposal, ExecutorState, ExecutorVolume, RoleProposal, Seat, Seats};
use crate::bindings::{Authority, Gate};
use crate::error::ChainError;

/// A role of the deployment. Its discriminant is the number in the contracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// Proposes holders of roles, executors and caps.
    Owner = 0,
    /// Creates markets, proposes results and cancels.
    Resolver = 1,
    /// Freezes, pauses and vetoes.
    Guardian = 2,
    /// Receives fees and surplus.
    Treasury = 3,
}

impl Role {
    /// Every role, in the contracts' order.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Resolver, Self::Guardian, Self::Treasury];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Resolver => "resolver",
            Self::Guardian => "guardian",
            Self::Treasury => "treasury",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be owner, resolver, guardian or treasury")]
pub struct ParseRoleError;

impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.as_str() == name).ok_or(ParseRoleError)
    }
}

impl Chain {
    /// Returns the address that holds a role, also if it is a suspended resolver.
    pub async fn role_holder(&self, role: Role) -> Result<Address, ChainError> {
        self.view(self.contracts.authority, Authority::holderCall { role: role as u8 }).await
    }

    /// Returns the owner's pending proposal of a new holder.
    pub async fn role_proposal(&self, role: Role) -> Result<Option<RoleProposal>, ChainError> {
        let proposed =
            self.view(self.contracts.authority, Authority::proposedCall { role: role as u8 }).await?;
        Ok(RoleProposal::of(proposed.to, proposed.acceptableAt))
    }

    /// Returns the guardian's pending proposal of a new owner.
    pub async fn recovery_proposal(&self) -> Result<Option<RoleProposal>, ChainError> {
        let proposed = self.view(self.contracts.authority, Authority::proposedRecoveryCall {}).await?;
        Ok(RoleProposal::of(proposed.to, proposed.acceptableAt))
    }

    /// Returns whether the resolver has lost its power over markets until a successor accepts.
    pub async fn is_resolver_suspended(&self) -> Result<bool, ChainError> {
        self.view(self.contracts.authority, Authority::isResolverSuspendedCall {}).await
    }

    /// Returns every role with its holder and its proposal.
    pub async fn seats(&self) -> Result<Seats, ChainError> {
        let (owner, resolver, guardian, treasury, recovery, is_resolver_suspended, delay_s) = tokio::try_join!(
            self.seat(Role::Owner),
            self.seat(Role::Resolver),
            self.seat(Role::Guardian),
            self.seat(Role::Treasury),
            self.recovery_proposal(),
            self.is_resolver_suspended(),
            self.view(self.contracts.authority, Authority::delayCall {}),
        )?;
        Ok(Seats { all: [owner, resolver, guardian, treasury], recovery, is_resolver_suspended, delay_s })
    }

    async fn seat(&self, role: Role) -> Result<Seat, ChainError> {
        let (holder, proposal) = tokio::try_join!(self.role_holder(role), self.role_proposal(role))?;
        Ok(Seat { role, holder, proposal })
    }

    /// Returns the Gate's executors, in no order.
    pub async fn executors(&self) -> Result<Vec<Address>, ChainError> {
        self.view(self.contracts.gate, Gate::executorsCall {}).await
    }

    /// Returns the state of an address as an executor, and the proposal for it.
    pub async fn executor(&self, address: Address) -> Result<ExecutorState, ChainError> {
        let (right, proposed) = tokio::try_join!(
            self.view(self.contracts.gate, Gate::executorCall { executor_: address }),
            self.view(self.contracts.gate, Gate::proposedExecutorCall { executor_: address }),
        )?;
        let volume = ExecutorVolume {
            cap_usdc_atomic: right.hourlyCap,
            used_usdc_atomic: right.used,
            as_of_s: right.asOf.into(),
        };
        let proposal = ExecutorProposal {
            hourly_cap_usdc_atomic: proposed.hourlyCap,
            enactable_at_s: proposed.enactableAt,
        };
        Ok(ExecutorState {
            address,
            volume: right.allowed.then_some(volume),
            is_paused: right.paused,
            proposal: (proposal.hourly_cap_usdc_atomic != 0).then_some(proposal),
        })
    }

    /// Returns whether all executors are stopped.
    pub async fn is_gate_paused(&self) -> Result<bool, ChainError> {
        self.view(self.contracts.gate, Gate::pausedCall {}).await
    }

    /// Returns every address that was ever proposed as an executor, from the Gate's logs of all
    /// blocks.
    ///
    /// # Errors
    /// Many nodes do not search that many blocks.
    pub async fn ever_proposed_executors(&self) -> Result<Vec<Address>, ChainError> {
        let filter = Filter::new()
            .address(self.contracts.gate)
            .event_signature(Gate::ExecutorProposed::SIGNATURE_HASH)
            .from_block(0);
        let logs = self.provider.get_logs(&filter).await.map_err(ChainError::of_read)?;
        let mut proposed: Vec<Address> =
            logs.iter().filter_map(|log| log.topics().get(1)).map(|it| Address::from_word(*it)).collect();
        proposed.sort_unstable();
        proposed.dedup();
        Ok(proposed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_names_round_trip_and_numbers_equal_the_contracts() {
        for (number, role) in (0u8..).zip(Role::ALL) {
            assert_eq!((role as u8, role.as_str().parse()), (number, Ok(role)));
        }
        assert_eq!("executor".parse::<Role>(), Err(ParseRoleError));
    }
}
