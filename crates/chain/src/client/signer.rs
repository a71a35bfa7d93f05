//! A secp256k1 key that signs transactions and an owner's batches.

use std::fmt;

use alloy::signers::SignerSync;
use alloy::signers::local::PrivateKeySigner;
use alloy_primitives::{Address, B256, Bytes};

use super::error::ChainError;
use super::owner::Owner;

/// A private key in memory. Printed as its address only.
#[derive(Clone)]
pub struct Signer(PrivateKeySigner);

impl Signer {
    /// Reads 32 bytes of hex, with or without `0x`.
    ///
    /// # Errors
    /// `Rejected`, without the text, where it is no key.
    pub fn from_hex(text: &str) -> Result<Self, ChainError> {
        let mut bytes = [0; 32];
        let digits = text.trim();
        hex::decode_to_slice(digits.strip_prefix("0x").unwrap_or(digits), &mut bytes)
            .map_err(|_| ChainError::Rejected("not 32 bytes of hex".to_owned()))?;
        Self::random(bytes)
    }

    /// The key of these 32 bytes, which the caller has drawn at random.
    ///
    /// # Errors
    /// `Rejected` for zero and for what is not below the group's order: draw again.
    pub fn random(bytes: [u8; 32]) -> Result<Self, ChainError> {
        let key = PrivateKeySigner::from_bytes(&B256::from(bytes));
        key.map(Self).map_err(|_| ChainError::Rejected("not a secp256k1 key".to_owned()))
    }

    /// The key's address.
    pub fn address(&self) -> Address {
        self.0.address()
    }

    /// This key as the owner of an account.
    pub fn owner(&self) -> Owner {
        Owner::Eoa(self.address())
    }

    /// The key's 32 bytes, for writing it to a key file.
    pub fn to_bytes(&self) -> B256 {
        self.0.to_bytes()
    }

    /// Signs a digest as it is, such as an EIP-712 one: 65 bytes r, s, v with v 27 or 28, as Solidity's
    /// recovery wants.
    ///
    /// # Errors
    /// `Rejected` if the signature cannot be made.
    pub fn sign_digest(&self, digest: B256) -> Result<Bytes, ChainError> {
        Ok(self.signature(digest)?.as_bytes().into())
    }

    pub(super) fn signature(&self, digest: B256) -> Result<alloy_primitives::Signature, ChainError> {
        self.0.sign_hash_sync(&digest).map_err(|error| ChainError::Rejected(error.to_string()))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.address()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_address_and_not_the_key() {
        let signer = Signer::from_hex(&"11".repeat(32)).unwrap();
        let shown = format!("{signer:?}");
        assert!(shown.contains("0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a"), "{shown}");
        assert!(!shown.contains("1111"), "{shown}");
    }

    #[test]
    fn text_that_is_no_key_is_refused_without_repeating_it() {
        for text in ["", "0x12", &"00".repeat(32), &"ff".repeat(32)] {
            let error = Signer::from_hex(text).unwrap_err();
            assert!(matches!(error, ChainError::Rejected(_)));
            assert!(text.len() < 8 || !error.to_string().contains(text));
        }
    }
}
