//! Encodes a passkey's WebAuthn assertion as the signature that the account contract reads.

use alloy::sol_types::SolValue;
use alloy_primitives::{B256, Bytes, U256, uint};

use super::owner::AccountOwner;
use crate::error::ChainError;

/// The order of the P-256 group. Authenticators produce either half of `s`; the contract accepts
/// only the lower one.
const P256_ORDER: U256 = uint!(0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551_U256);

/// A WebAuthn assertion over a batch's digest, as a browser returns it. The challenge is the 32
/// bytes of the digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// The authenticator data, exactly as signed.
    pub authenticator_data: Bytes,
    /// The client data JSON, byte for byte as signed.
    pub client_data_json: String,
    /// The `r` of the ECDSA signature, big-endian.
    pub r: B256,
    /// The `s` of the ECDSA signature, big-endian, in either half of the group.
    pub s: B256,
}

impl Assertion {
    /// Returns the signature for `executeSigned`: the 64 bytes of `owner`, followed by the six
    /// members of OpenZeppelin's `WebAuthnAuth` with `s` in its lower half.
    ///
    /// The members are encoded as a parameter list, because the contract does not expect the
    /// leading offset that ABI encoding gives a struct.
    ///
    /// # Errors
    ///
    /// `Rejected` if `owner` is not a passkey, the client data lacks a type or a challenge, or `s`
    /// is not below the group's order.
    pub fn to_signature(&self, owner: &AccountOwner) -> Result<Bytes, ChainError> {
        if !matches!(owner, AccountOwner::Passkey { .. }) {
            return Err(ChainError::Rejected("only a passkey can make an assertion".to_owned()));
        }
        // The contract finds both members by their byte offset instead of parsing the JSON.
        let index_of = |member: &str| {
            let at = self.client_data_json.find(member).map(U256::from);
            at.ok_or_else(|| ChainError::Rejected(format!("the client data has no {member}")))
        };
        let (challenge_index, type_index) = (index_of("\"challenge\":")?, index_of("\"type\":")?);
        let members = (
            self.r,
            self.low_s()?,
            challenge_index,
            type_index,
            self.authenticator_data.clone(),
            self.client_data_json.clone(),
        );
        Ok([owner.to_bytes(), members.abi_encode_params().into()].concat().into())
    }

    fn low_s(&self) -> Result<B256, ChainError> {
        let s = U256::from_be_bytes(self.s.0);
        match P256_ORDER.checked_sub(s) {
            // `s` and `n - s` are both valid for the same message: use the smaller one.
            Some(other) if !other.is_zero() => Ok(B256::from(s.min(other))),
            _ => Err(ChainError::Rejected("s is not below the order of P-256".to_owned())),
        }
    }
}
