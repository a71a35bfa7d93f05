//! The keys of executors: in this process, or held by a remote signer.

use std::fmt;
use std::sync::Arc;

use alloy::consensus::{SignableTransaction, TxEnvelope};
use alloy::eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Signature};
use futures::future::BoxFuture;

use super::chain::Chain;
use super::signer::Signer;
use super::transactions::{SignedTx, Transaction};
use crate::error::ChainError;

/// The failure of a remote signer. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    /// It does not answer, or answers with an error. Retry later.
    #[error("the signer of {executor} is not available: {reason}")]
    Unavailable { executor: Address, reason: String },
    /// Its signature is not one of the executor over the transaction.
    #[error("the signer of {executor} returned a wrong signature: {reason}")]
    WrongSignature { executor: Address, reason: &'static str },
    /// The transaction could not be signed for another reason.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// A key outside of this process. Its answers are checked by [`Chain::sign_with`].
pub trait RemoteKey: Send + Sync {
    /// Signs the Keccak-256 hash of `unsigned`, an encoded transaction without its signature. The parity
    /// of the signature is not used.
    ///
    /// # Errors
    ///
    /// The reason why there is no signature, without secrets.
    fn sign<'a>(&'a self, unsigned: &'a [u8], hash: B256) -> BoxFuture<'a, Result<Signature, String>>;

    /// Returns the address of the key, without signing anything.
    ///
    /// # Errors
    ///
    /// The reason why the signer does not have the key, without secrets.
    fn address(&self) -> BoxFuture<'_, Result<Address, String>>;
}

/// The key of an executor.
#[derive(Clone)]
pub enum LaneSigner {
    /// In this process.
    Local(Signer),
    /// Held by a remote signer.
    Remote { address: Address, key: Arc<dyn RemoteKey> },
}

impl LaneSigner {
    pub fn address(&self) -> Address {
        match self {
            Self::Local(signer) => signer.address(),
            Self::Remote { address, .. } => *address,
        }
    }

    /// Returns the key, if it is in this process.
    pub const fn local(&self) -> Option<&Signer> {
        match self {
            Self::Local(signer) => Some(signer),
            Self::Remote { .. } => None,
        }
    }

    /// Checks that the key can be used, without signing anything.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the remote signer does not answer, lacks the key, or has another one.
    pub async fn check(&self) -> Result<(), SignerError> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Remote { address, key } => {
                let unavailable = |reason| SignerError::Unavailable { executor: *address, reason };
                match key.address().await.map_err(unavailable)? {
                    held if held == *address => Ok(()),
                    held => Err(unavailable(format!("it has the key of {held}"))),
                }
            }
        }
    }
}

impl From<Signer> for LaneSigner {
    fn from(signer: Signer) -> Self {
        Self::Local(signer)
    }
}

impl fmt::Debug for LaneSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LaneSigner").field(&self.address()).finish()
    }
}

impl Chain {
    /// Signs an EIP-1559 transaction, possibly with a remote signer. Its signature is checked: it must
    /// be one of the executor over exactly this transaction.
    ///
    /// # Errors
    ///
    /// `Unavailable` if a remote signer does not sign, `WrongSignature` if it signs something else.
    pub async fn sign_with(&self, signer: &LaneSigner, tx: &Transaction) -> Result<SignedTx, SignerError> {
        let (executor, key) = match signer {
            LaneSigner::Local(signer) => return Ok(self.sign(signer, tx)?),
            LaneSigner::Remote { address, key } => (*address, key),
        };
        let unsigned = self.unsigned(tx)?;
        let hash = unsigned.signature_hash();
        let signature = key
            .sign(&unsigned.encoded_for_signing(), hash)
            .await
            .map_err(|reason| SignerError::Unavailable { executor, reason })?;
        let signature = own_signature(signature, hash, executor)
            .map_err(|reason| SignerError::WrongSignature { executor, reason })?;
        let signed = TxEnvelope::from(unsigned.into_signed(signature));
        Ok(SignedTx { hash: *signed.tx_hash(), raw: signed.encoded_2718().into() })
    }
}

/// Checks that a signature over the hash is one of the executor. Returns its only form that the chain
/// accepts: with the lower one of the two values that are valid for s, and with the parity that fits.
fn own_signature(signature: Signature, hash: B256, executor: Address) -> Result<Signature, &'static str> {
    let lower = signature.normalized_s();
    let forms = [false, true].map(|parity| lower.with_parity(parity));
    let signers = forms.map(|form| form.recover_address_from_prehash(&hash).ok());
    if signers == [None, None] {
        return Err("it is malformed");
    }
    let own = signers.iter().zip(forms).find(|(signer, _)| **signer == Some(executor));
    own.map(|(_, form)| form).ok_or("it is one of another key, or over another transaction")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    #[test]
    fn a_signature_gets_the_lower_s_and_the_parity_that_fits() {
        let order = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        let order: U256 = order.parse().unwrap();
        for byte in 1..20 {
            let (signer, hash) = (Signer::random([byte; 32]).unwrap(), B256::repeat_byte(byte));
            let signed = signer.signature(hash).unwrap();
            for parity in [false, true] {
                let higher = Signature::new(signed.r(), order - signed.s(), parity);
                for sent in [signed.with_parity(parity), higher] {
                    assert_eq!(own_signature(sent, hash, signer.address()), Ok(signed));
                }
            }
        }
    }

    #[test]
    fn a_signature_of_another_key_or_over_another_hash_is_rejected() {
        let (signer, hash) = (Signer::random([7; 32]).unwrap(), B256::repeat_byte(7));
        let signed = signer.signature(hash).unwrap();
        let other = "it is one of another key, or over another transaction";
        assert_eq!(own_signature(signed, hash, Address::ZERO), Err(other));
        assert_eq!(own_signature(signed, B256::ZERO, signer.address()), Err(other));
        for (r, s) in [(U256::ZERO, signed.s()), (signed.r(), U256::ZERO), (U256::MAX, signed.s())] {
            let malformed = own_signature(Signature::new(r, s, false), hash, signer.address());
            assert_eq!(malformed, Err("it is malformed"), "{r} {s}");
        }
    }
}
