//! Raw transactions: everything that can be decided without the state, before they queue.

use alloy::consensus::transaction::SignerRecoverable as _;
use alloy::consensus::{Transaction as _, TxEnvelope};
use alloy::eips::eip2718::Decodable2718 as _;
use alloy_primitives::Bytes;

use super::super::EmbeddedNode;
use super::super::block::SignedTransaction;
use super::super::error::RpcError;
use super::Mining;
use super::params::Params;

/// Bytes of an encoded transaction, at most: geth's limit for its pool.
const MAX_BYTES: usize = 128 * 1024;

impl EmbeddedNode {
    /// The transaction to mine; None for a block without one.
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

    /// Decodes a raw transaction and recovers its signer, the dearest part of a send, outside every lock.
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
        // A legacy transaction from before EIP-155 names no chain; some well-known deployments are such.
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
