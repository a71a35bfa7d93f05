//! Methods that return blocks, transactions and receipts, from memory or the database.

use std::sync::Arc;

use alloy::consensus::transaction::Recovered;
use alloy::consensus::{Receipt, ReceiptEnvelope, ReceiptWithBloom, Transaction as _};
use alloy::eips::{BlockId, BlockNumberOrTag};
use alloy::rpc::types::{
    Block, BlockTransactions, Header, Log, Transaction, TransactionReceipt, Withdrawals,
};
use alloy_primitives::{B256, Bytes, U64, U256};
use serde::Deserialize;

use super::params::Params;
use super::{RpcResult, json};
use crate::EmbeddedNode;
use crate::block::{MinedTransaction, SealedBlock};
use crate::error::RpcError;
use crate::state::ChainState;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum BlockRef {
    Hash(B256),
    Id(BlockId),
}

impl From<BlockRef> for BlockId {
    fn from(block: BlockRef) -> Self {
        match block {
            BlockRef::Hash(hash) => Self::hash(hash),
            BlockRef::Id(id) => id,
        }
    }
}

/// Returns true for the tags that mean the newest block.
pub(super) fn is_newest(id: &BlockId) -> bool {
    use BlockNumberOrTag::{Finalized, Latest, Pending, Safe};
    matches!(id, BlockId::Number(Latest | Pending | Safe | Finalized))
}

impl EmbeddedNode {
    /// Returns the number for a tag. It may be higher than the newest block's.
    pub(super) fn number_of(&self, chain: &ChainState, tag: BlockNumberOrTag) -> u64 {
        match tag {
            BlockNumberOrTag::Number(number) => number,
            BlockNumberOrTag::Earliest => 0,
            // Latest, pending, safe and finalized all mean the newest block.
            _ => chain.head().header.number,
        }
    }

    pub(super) fn find_block(
        &self,
        chain: &ChainState,
        id: BlockId,
    ) -> Result<Option<Arc<SealedBlock>>, RpcError> {
        let number = match id {
            BlockId::Number(tag) => Some(self.number_of(chain, tag)),
            BlockId::Hash(hash) => match chain.recent_number(&hash.block_hash) {
                Some(number) => Some(number),
                None => self.shared.archive.number(&hash.block_hash)?,
            },
        };
        number.map_or(Ok(None), |number| self.find_number(chain, number))
    }

    /// Returns a block that readers may see. The miner commits a block before it publishes it, so
    /// the database may already have a block above the visible head.
    fn find_number(&self, chain: &ChainState, number: u64) -> Result<Option<Arc<SealedBlock>>, RpcError> {
        if number > chain.head().header.number {
            return Ok(None);
        }
        match chain.recent_block(number) {
            Some(block) => Ok(Some(Arc::clone(block))),
            None => Ok(self.shared.archive.block(number)?.map(Arc::new)),
        }
    }

    /// Returns the block named by the first parameter.
    fn block_param(&self, params: &Params<'_>) -> Result<Option<Arc<SealedBlock>>, RpcError> {
        let id: BlockRef = params.get(0)?;
        self.find_block(&self.shared.chain.read(), id.into())
    }

    /// Returns the block of the transaction whose hash is the first parameter.
    fn block_of_transaction(&self, params: &Params<'_>) -> Result<Option<Arc<SealedBlock>>, RpcError> {
        let hash: B256 = params.get(0)?;
        let chain = self.shared.chain.read();
        let number = match chain.recent_transaction(&hash) {
            Some(number) => Some(number),
            None => self.shared.archive.transaction(&hash)?,
        };
        number.map_or(Ok(None), |number| self.find_number(&chain, number))
    }

    pub(super) fn block(&self, params: &Params<'_>) -> RpcResult {
        let full = params.find(1)?.unwrap_or(false);
        json(&self.block_param(params)?.map(|block| block_view(&block, full)))
    }

    pub(super) fn block_receipts(&self, params: &Params<'_>) -> RpcResult {
        let receipts = |block: Arc<SealedBlock>| -> Vec<TransactionReceipt> {
            block.mined.iter().map(|mined| receipt_view(&block, mined)).collect()
        };
        json(&self.block_param(params)?.map(receipts))
    }

    pub(super) fn block_transaction_count(&self, params: &Params<'_>) -> RpcResult {
        json(&self.block_param(params)?.map(|block| U64::from(block.mined.iter().count())))
    }

    pub(super) fn transaction_in_block(&self, params: &Params<'_>) -> RpcResult {
        let index: U64 = params.get(1)?;
        // A block has at most one transaction, at index 0.
        let block = self.block_param(params)?.filter(|_| index.is_zero());
        json(&block.and_then(|block| block.mined.as_ref().map(|mined| transaction_view(&block, mined))))
    }

    pub(super) fn transaction_by_hash(&self, params: &Params<'_>) -> RpcResult {
        let block = self.block_of_transaction(params)?;
        json(&block.and_then(|block| block.mined.as_ref().map(|mined| transaction_view(&block, mined))))
    }

    pub(super) fn raw_transaction(&self, params: &Params<'_>) -> RpcResult {
        let block = self.block_of_transaction(params)?;
        let raw = |block: Arc<SealedBlock>| {
            block.mined.as_ref().map(|mined| Bytes::from(mined.encoded_transaction()))
        };
        json(&block.and_then(raw))
    }

    pub(super) fn transaction_receipt(&self, params: &Params<'_>) -> RpcResult {
        let block = self.block_of_transaction(params)?;
        json(&block.and_then(|block| block.mined.as_ref().map(|mined| receipt_view(&block, mined))))
    }
}

fn block_view(block: &SealedBlock, full: bool) -> Block {
    let transactions = match (&block.mined, full) {
        (Some(mined), true) => BlockTransactions::Full(vec![transaction_view(block, mined)]),
        (None, true) => BlockTransactions::Full(Vec::new()),
        (mined, false) => BlockTransactions::Hashes(mined.iter().map(MinedTransaction::hash).collect()),
    };
    // Approximate: omits the RLP framing of the block.
    let size = block.encoded_header().len()
        + block.mined.as_ref().map_or(0, |mined| mined.encoded_transaction().len());
    let header = Header {
        hash: block.hash,
        inner: block.header.clone(),
        total_difficulty: None,
        size: Some(U256::from(size)),
    };
    Block { header, uncles: Vec::new(), transactions, withdrawals: Some(Withdrawals::default()) }
}

fn transaction_view(block: &SealedBlock, mined: &MinedTransaction) -> Transaction {
    let envelope = mined.transaction.envelope.clone();
    Transaction {
        effective_gas_price: Some(envelope.effective_gas_price(block.header.base_fee_per_gas)),
        inner: Recovered::new_unchecked(envelope, mined.transaction.sender),
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        transaction_index: Some(0),
        block_timestamp: Some(block.header.timestamp),
    }
}

pub(super) fn receipt_view(block: &SealedBlock, mined: &MinedTransaction) -> TransactionReceipt {
    let envelope = &mined.transaction.envelope;
    let logs = mined
        .logs()
        .iter()
        .enumerate()
        .map(|(index, log)| log_view(block, mined.hash(), index, log))
        .collect();
    let receipt =
        Receipt { status: mined.receipt.status().into(), cumulative_gas_used: mined.gas_used(), logs };
    let receipt = ReceiptWithBloom { receipt, logs_bloom: block.header.logs_bloom };
    TransactionReceipt {
        inner: ReceiptEnvelope::from_typed(envelope.tx_type(), receipt),
        transaction_hash: mined.hash(),
        transaction_index: Some(0),
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        gas_used: mined.gas_used(),
        effective_gas_price: envelope.effective_gas_price(block.header.base_fee_per_gas),
        blob_gas_used: None,
        blob_gas_price: None,
        from: mined.transaction.sender,
        to: envelope.to(),
        contract_address: mined.created(),
    }
}

pub(super) fn log_view(
    block: &SealedBlock,
    transaction: B256,
    index: usize,
    log: &alloy_primitives::Log,
) -> Log {
    Log {
        inner: log.clone(),
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        block_timestamp: Some(block.header.timestamp),
        transaction_hash: Some(transaction),
        transaction_index: Some(0),
        // The index within the transaction is also the index within its block.
        log_index: Some(index as u64),
        removed: false,
    }
}
