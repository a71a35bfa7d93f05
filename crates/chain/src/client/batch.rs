//! The EIP-712 typed data of a batch of calls, which an owner of an account signs.

use alloy::sol_types::{Eip712Domain, SolStruct};
use alloy_primitives::{Address, B256, Bytes, U256};
use serde::{Deserialize, Serialize};

/// One call that an account makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub target: Address,
    /// In wei.
    pub value: U256,
    pub data: Bytes,
}

impl Call {
    /// Creates a call that sends no native currency.
    pub fn new(target: Address, data: Bytes) -> Self {
        Self { target, value: U256::ZERO, data }
    }
}

mod typed {
    // The struct and field names are part of the EIP-712 type hash: they must equal the contract's.
    alloy::sol! {
        struct Call {
            address target;
            uint256 value;
            bytes data;
        }
        struct Batch {
            Call[] calls;
            uint256 nonce;
            uint256 deadline;
        }
    }
}

/// Returns the digest that an owner of `account` signs for a batch at the account's `nonce`, valid
/// until `deadline` (Unix seconds).
///
/// Equal to `IAccount.digestOf`, but computed locally because the account contract may not exist
/// yet.
pub fn batch_digest(chain_id: u64, account: Address, calls: &[Call], nonce: u64, deadline: u64) -> B256 {
    let domain = Eip712Domain {
        name: Some("Foretell Account".into()),
        version: Some("1".into()),
        chain_id: Some(U256::from(chain_id)),
        verifying_contract: Some(account),
        salt: None,
    };
    let calls = calls.iter().map(|call| typed::Call {
        target: call.target,
        value: call.value,
        data: call.data.clone(),
    });
    let batch =
        typed::Batch { calls: calls.collect(), nonce: U256::from(nonce), deadline: U256::from(deadline) };
    batch.eip712_signing_hash(&domain)
}
