//! A passkey's signature in the form that the account contract reads.

use alloy::sol_types::SolValue;
use alloy_primitives::{B256, Bytes, U256, uint};

use super::error::ChainError;

/// The order of P-256's group. The contract refuses the higher half of `s`, which authenticators do produce.
const P256_ORDER: U256 = uint!(0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551_U256);

/// A WebAuthn assertion over a batch's digest, as a browser hands it over. The challenge is the digest's 32
/// bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// The authenticator's data, as signed.
    pub authenticator_data: Bytes,
    /// The client data in JSON, byte for byte as signed.
    pub client_data_json: String,
    /// The ECDSA signature's r, big-endian.
    pub r: B256,
    /// The ECDSA signature's s, big-endian, either half.
    pub s: B256,
}

impl Assertion {
    /// The signature for `executeSigned`: the six members of OpenZeppelin's `WebAuthnAuth` as a parameter
    /// list, without the offset that a struct would have, and with `s` in its lower half.
    ///
    /// # Errors
    /// `Rejected` where the client data holds no type or no challenge, or `s` is not below the group's order.
    pub fn to_signature(&self) -> Result<Bytes, ChainError> {
        let index_of = |member: &str| {
            let at = self.client_data_json.find(member).map(U256::from);
            at.ok_or_else(|| ChainError::Rejected(format!("the client data holds no {member}")))
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
        Ok(members.abi_encode_params().into())
    }

    fn low_s(&self) -> Result<B256, ChainError> {
        let s = U256::from_be_bytes(self.s.0);
        match P256_ORDER.checked_sub(s) {
            Some(other) if !other.is_zero() => Ok(B256::from(s.min(other))),
            _ => Err(ChainError::Rejected("s is not below the order of P-256".to_owned())),
        }
    }
}
