//! Block 0: who owns what before the first transaction.

use alloy::consensus::Header;
use alloy_primitives::{Address, Bytes, U256, address, bytes};
use domain::Timestamp;

use super::block::{self, SealedBlock};
use super::evm::{self, AccountView};
use super::state::AccountChange;

/// The deployer that real networks have at this address, so that CREATE2 addresses agree with them.
pub const CREATE2_DEPLOYER: Address = address!("0x4e59b44847b379578588920cA78FbF26c0B4956C");
/// Its runtime code: calls `CREATE2` with the first word as salt and the rest as init code, returns the address.
const CREATE2_DEPLOYER_CODE: Bytes = bytes!(
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
);

/// What a new chain starts from. A chain that exists already keeps its own, and only `chain_id` must agree with it.
#[derive(Debug, Clone)]
pub struct Genesis {
    /// The chain id of every transaction.
    pub chain_id: u64,
    /// Opening balances, in wei.
    pub balances: Vec<(Address, U256)>,
    /// Time of block 0; whole seconds count.
    pub timestamp: Timestamp,
    /// Gas limit of every block, which is one transaction; 60,000,000 is the main network's.
    pub gas_limit: u64,
    /// Base fee of every block, in wei per gas. It never moves, since no block is ever contended for.
    pub base_fee: u64,
}

impl Genesis {
    /// Accounts of block 0, sorted by address.
    pub(super) fn changes(&self) -> Vec<AccountChange> {
        let mut accounts: Vec<(Address, AccountView)> = Vec::with_capacity(self.balances.len() + 1);
        // Nonce 1 is what a contract has since EIP-161.
        let deployer =
            AccountView { nonce: 1, ..AccountView::with_code(evm::legacy_code(CREATE2_DEPLOYER_CODE)) };
        accounts.push((CREATE2_DEPLOYER, deployer));
        for (address, balance) in &self.balances {
            match accounts.iter_mut().find(|(known, _)| known == address) {
                Some((_, account)) => account.balance = account.balance.saturating_add(*balance),
                None => {
                    accounts.push((*address, AccountView { balance: *balance, ..AccountView::default() }))
                }
            }
        }
        accounts.sort_by_key(|(address, _)| *address);
        let change = |(id, (address, after)): (usize, (Address, AccountView))| AccountChange {
            id: id as i64,
            address,
            new_code: !after.code.is_empty(),
            after,
            info_changed: true,
            slots: Vec::new(),
        };
        accounts.into_iter().enumerate().map(change).collect()
    }

    pub(super) fn block(&self, changes: &[AccountChange]) -> SealedBlock {
        let parent =
            Header { gas_limit: self.gas_limit, base_fee_per_gas: Some(self.base_fee), ..Header::default() };
        block::seal_genesis(parent, self.timestamp.s(), changes)
    }
}
