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
    /// Signs the Keccak-256 hash of `unsigned`, an encoded transaction without its signature.
    ///
    /// # Errors
    ///
    /// The reason why there is no signature, without secrets.
    fn sign<'a>(&'a self, unsigned: &'a [u8], hash: B256) -> BoxFuture<'a, Result<Signature, String>>;

    /// Checks that the signer has the key, without signing anything.
    ///
    /// # Errors
    ///
    /// The reason why it has not, without secrets.
    fn check(&self) -> BoxFuture<'_, Result<(), String>>;
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
    /// `Unavailable` if the remote signer does not answer or lacks the key.
    pub async fn check(&self) -> Result<(), SignerError> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Remote { address, key } => {
                key.check().await.map_err(|reason| SignerError::Unavailable { executor: *address, reason })
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
        let wrong = |reason| SignerError::WrongSignature { executor, reason };
        let recovered =
            signature.recover_address_from_prehash(&hash).map_err(|_| wrong("it is malformed"))?;
        if recovered != executor {
            return Err(wrong("it is one of another key, or over another transaction"));
        }
        // The chain accepts only the lower one of the two values that are valid for s.
        let signature = signature.normalized_s();
        let signed = TxEnvelope::from(unsigned.into_signed(signature));
        Ok(SignedTx { hash: *signed.tx_hash(), raw: signed.encoded_2718().into() })
    }
}
