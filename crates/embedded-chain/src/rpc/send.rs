//! Validates raw transactions before they are queued, as far as possible without the state.

use alloy::consensus::transaction::SignerRecoverable as _;
use alloy::consensus::{Transaction as _, TxEnvelope};
use alloy::eips::eip2718::Decodable2718 as _;
use alloy_primitives::Bytes;

use super::Mining;
use super::params::Params;
use crate::EmbeddedNode;
use crate::block::SignedTransaction;
use crate::error::RpcError;

/// The maximum length of an encoded transaction in bytes: the limit of geth's pool.
const MAX_BYTES: usize = 128 * 1024;

impl EmbeddedNode {
    /// Returns the transaction to mine; `None` for a block without one.
    pub(super) fn job(
        &self,
        mining: &Mining,
        params: &Params<'_>,
    ) -> Result<Option<Box<SignedTransaction>>, RpcError> {
        match mining {
            Mining::EvmMine | Mining::Mine => Ok(None),
            Mining::Send | Mining::SendSync => self.decode(&params.get::<Bytes>(0)?).map(Some),
        }
    }

    /// Decodes a raw transaction and recovers its signer. Recovery is the most expensive part of a
    /// send, so it happens outside every lock.
    fn decode(&self, raw: &[u8]) -> Result<Box<SignedTransaction>, RpcError> {
        if raw.len() > MAX_BYTES {
            return Err(RpcError::refused(format!(
                "oversized data: transaction size {}, limit {MAX_BYTES}",
                raw.len()
            )));
        }
        let envelope = TxEnvelope::decode_2718_exact(raw)
            .map_err(|error| RpcError::refused(format!("invalid transaction: {error}")))?;
        if envelope.is_eip4844() {
            return Err(RpcError::refused("transaction type not supported"));
        }
        // Legacy transactions from before EIP-155 name no chain. Some well-known deployments use
        // them.
        if let Some(chain_id) = envelope.chain_id()
            && chain_id != self.chain_id()
        {
            return Err(RpcError::refused(format!(
                "invalid chain id for signer: have {chain_id} want {}",
                self.chain_id()
            )));
        }
        let sender = envelope.recover_signer().map_err(|_| RpcError::refused("invalid sender"))?;
        Ok(Box::new(SignedTransaction { envelope, sender }))
    }
}
