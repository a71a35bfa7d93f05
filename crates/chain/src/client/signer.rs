//! A secp256k1 key that signs transactions and an owner's batches.

use std::fmt;

use alloy::signers::SignerSync;
use alloy::signers::local::PrivateKeySigner;
use alloy_primitives::{Address, B256, Bytes};
use domain::SecretKey;

use super::owner::AccountOwner;
use crate::error::ChainError;

/// A private key in memory. `Debug` prints only its address.
#[derive(Clone)]
pub struct Signer(PrivateKeySigner);

impl Signer {
    /// Reads 32 bytes of hex, with or without `0x`.
    ///
    /// # Errors
    ///
    /// `Rejected` if the text is not a key. The error does not contain the text.
    pub fn from_hex(text: &str) -> Result<Self, ChainError> {
        let key = SecretKey::from_hex(text.trim())
            .ok_or_else(|| ChainError::Rejected("not 32 bytes of hex".to_owned()))?;
        Self::from_bytes(key.expose())
    }

    /// Creates a key from 32 random bytes.
    ///
    /// # Errors
    ///
    /// `Rejected` if the bytes are 0 or not below the group's order: draw new bytes.
    pub fn random(bytes: [u8; 32]) -> Result<Self, ChainError> {
        Self::from_bytes(&bytes)
    }

    fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ChainError> {
        let key = PrivateKeySigner::from_slice(bytes);
        key.map(Self).map_err(|_| ChainError::Rejected("not a secp256k1 key".to_owned()))
    }

    pub fn address(&self) -> Address {
        self.0.address()
    }

    /// Returns this key's address as the owner of an account.
    pub fn owner(&self) -> AccountOwner {
        AccountOwner::Eoa(self.address())
    }

    /// Returns the 32 bytes of the key, for writing a key file.
    pub fn to_bytes(&self) -> B256 {
        self.0.to_bytes()
    }

    /// Signs a digest without further hashing. Returns the 65 bytes r, s and v with v 27 or 28, as
    /// `ecrecover` expects.
    ///
    /// # Errors
    ///
    /// `Rejected` if the signature cannot be created.
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
    fn debug_output_has_the_address_and_not_the_key() {
        let signer = Signer::from_hex(&"11".repeat(32)).unwrap();
        let shown = format!("{signer:?}");
        assert!(shown.contains("0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a"), "{shown}");
        assert!(!shown.contains("1111"), "{shown}");
    }

    #[test]
    fn invalid_keys_are_rejected_without_echoing_them() {
        for text in ["", "0x12", &"00".repeat(32), &"ff".repeat(32)] {
            let error = Signer::from_hex(text).unwrap_err();
            assert!(matches!(error, ChainError::Rejected(_)));
            assert!(text.len() < 8 || !error.to_string().contains(text));
        }
    }
}
