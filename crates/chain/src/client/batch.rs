//! What an account's owner signs: a batch of calls as EIP-712 typed data.

use alloy::sol_types::{Eip712Domain, SolStruct};
use alloy_primitives::{Address, B256, Bytes, U256};

/// One call that an account makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The contract called.
    pub target: Address,
    /// Native currency sent along, in wei.
    pub value: U256,
    /// The calldata.
    pub data: Bytes,
}

impl Call {
    /// A call that sends no native currency.
    pub fn new(target: Address, data: Bytes) -> Self {
        Self { target, value: U256::ZERO, data }
    }
}

mod typed {
    // Named as the account contract hashes them.
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

/// The digest that the owner of `account` signs for a batch at the account's `nonce`, valid until `deadline`
/// (Unix seconds). Computed here, since the account may not exist yet; equal to `IAccount.digestOf`.
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
