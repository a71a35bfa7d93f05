//! Accounts and the changes that a block makes to them.

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
pub(super) use revm::bytecode::Bytecode;

/// An account without its storage.
#[derive(Debug, Clone)]
pub(super) struct AccountView {
    pub nonce: u64,
    /// In wei.
    pub balance: U256,
    pub code_hash: B256,
    pub code: Bytecode,
}

impl Default for AccountView {
    fn default() -> Self {
        Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY, code: Bytecode::default() }
    }
}

impl AccountView {
    pub fn with_code(code: Bytecode) -> Self {
        Self { code_hash: code.hash_slow(), code, ..Self::default() }
    }
}

/// Analyses deployed code for execution.
pub(super) fn legacy_code(code: Bytes) -> Bytecode {
    Bytecode::new_legacy(code)
}

/// Analyses stored code, which may be an EIP-7702 delegation. Returns `None` if the delegation is
/// malformed.
pub(super) fn stored_code(code: Bytes) -> Option<Bytecode> {
    Bytecode::new_raw_checked(code).ok()
}

/// The changes of one account in a block.
#[derive(Debug, Clone)]
pub(super) struct AccountChange {
    /// Assigned by `Overlay::stage` for the changes of an execution.
    pub id: i64,
    pub address: Address,
    pub after: AccountView,
    /// True if the nonce, balance or code changed.
    pub info_changed: bool,
    /// True if the account received this code in the block.
    pub new_code: bool,
    /// Changed slots with their new values, sorted by slot.
    pub slots: Vec<(U256, U256)>,
}
