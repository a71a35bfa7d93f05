//! Blocks as the service sees them.

use alloy::eips::BlockNumberOrTag;
use alloy::providers::{DynProvider, Provider};
use alloy_primitives::B256;

use crate::error::ChainError;

/// The parts of a block header that the service uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub number: u64,
    pub hash: B256,
    /// Differs from the known hash of block `number - 1` after a reorganization.
    pub parent_hash: B256,
    pub timestamp_s: u64,
}

/// Returns the block with this tag or height, if the node has one.
pub(crate) async fn find(provider: &DynProvider, tag: BlockNumberOrTag) -> Result<Option<Block>, ChainError> {
    let block = provider.get_block_by_number(tag).await.map_err(ChainError::of_read)?;
    Ok(block.map(|block| Block {
        number: block.header.number,
        hash: block.header.hash,
        parent_hash: block.header.parent_hash,
        timestamp_s: block.header.timestamp,
    }))
}

/// Returns the newest block.
pub(crate) async fn head(provider: &DynProvider) -> Result<Block, ChainError> {
    let head = find(provider, BlockNumberOrTag::Latest).await?;
    head.ok_or_else(|| ChainError::Decode("the node has no latest block".to_owned()))
}
