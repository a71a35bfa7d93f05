//! The genesis block: the accounts before the first transaction.

use alloy::consensus::Header;
use alloy_primitives::{Address, Bytes, U256, address, bytes};
use domain::Timestamp;

use crate::account::{self, AccountChange, AccountView};
use crate::block::{self, SealedBlock};

/// The deterministic deployer at its address on public networks, so that CREATE2 addresses are the
/// same here.
pub const CREATE2_DEPLOYER: Address = address!("0x4e59b44847b379578588920cA78FbF26c0B4956C");
/// The deployer's runtime code. It calls `CREATE2` with the first word as salt and the rest as
/// creation code, and returns the address.
const CREATE2_DEPLOYER_CODE: Bytes = bytes!(
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
);

/// The initial state of a new chain. An existing chain keeps its own genesis, and only `chain_id`
/// must match.
#[derive(Debug, Clone)]
pub struct Genesis {
    pub chain_id: u64,
    /// In wei.
    pub balances: Vec<(Address, U256)>,
    /// The time of block 0, truncated to whole seconds.
    pub timestamp: Timestamp,
    /// The gas limit of every block, and so of its one transaction. Ethereum's main network uses
    /// 60,000,000.
    pub gas_limit: u64,
    /// The base fee of every block, in wei per gas. It is constant, because transactions never
    /// compete for a block.
    pub base_fee: u64,
}

impl Genesis {
    /// Returns the accounts of block 0, sorted by address.
    pub(super) fn changes(&self) -> Vec<AccountChange> {
        let mut accounts: Vec<(Address, AccountView)> = Vec::with_capacity(self.balances.len() + 1);
        // Contracts start with nonce 1 since EIP-161.
        let deployer =
            AccountView { nonce: 1, ..AccountView::with_code(account::legacy_code(CREATE2_DEPLOYER_CODE)) };
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
