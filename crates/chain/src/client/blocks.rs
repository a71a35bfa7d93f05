//! Reads blocks with the logs of the hub and the Gate, and checks the logs against the block
//! headers.
//!
//! A node's URL often leads to several nodes of different heights. A query by block number can
//! reach a node that lacks the block, which then answers with an empty list. This module therefore:
//!
//! - queries logs by block hash, which such a node must reject,
//! - checks that the headers form a chain, and that the logs match their header's bloom filter,
//! - reads the block's receipts if the bloom filter shows a log of a contract but the query
//!   returned none.

use alloy::eips::BlockId;
use alloy::providers::Provider;
use alloy::rpc::types::{Filter, Header, Log};
use alloy_primitives::{B256, Bloom, BloomInput, Keccak256};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;

use super::chain::Chain;
use super::event::ChainEvent;
use crate::error::ChainError;

/// The maximum number of concurrent requests to the node.
const CONCURRENT: usize = 16;

/// A bloom filter with more bits set than this (of 2048) matches most addresses by chance. A match
/// is then too weak a reason to fetch all receipts.
const DENSE_BLOOM_BITS: u32 = 1_024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// The hash of the block before the first one.
    pub parent_hash: B256,
    /// The blocks in order. For the embedded chain: only blocks with events, and the last block.
    pub blocks: Vec<BlockEvents>,
}

/// A block with the events of the hub and the Gate in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEvents {
    pub number: u64,
    pub hash: B256,
    pub timestamp_s: u64,
    /// In log order.
    pub events: Vec<ChainEvent>,
    /// A digest of the logs, for comparing two reads of the same block. `None` if a second read
    /// cannot differ or cannot be compared: on the embedded chain, and for a skipped block.
    pub logs_digest: Option<B256>,
}

/// Only the fields that receipts have on all chains: some chains have transaction types that alloy
/// cannot parse.
#[derive(Debug, Deserialize)]
struct BareReceipt {
    logs: Vec<Log>,
}

impl Chain {
    /// Returns the blocks `from..=to` with their events. Blocks listed in `skipped` are returned
    /// without events.
    ///
    /// # Errors
    ///
    /// `Inconsistent` if a block is missing, the headers do not form a chain, or logs do not match
    /// their block.
    pub async fn read_blocks(&self, from: u64, to: u64, skipped: &[u64]) -> Result<Blocks, ChainError> {
        if self.is_embedded() {
            let mut read = self.read_embedded_blocks(from, to).await?;
            let skipped = |block: &&mut BlockEvents| skipped.contains(&block.number);
            read.blocks.iter_mut().filter(skipped).for_each(|block| block.events.clear());
            return Ok(read);
        }
        let headers: Vec<Header> = stream::iter(from..=to)
            .map(|number| self.header(number))
            .buffered(CONCURRENT)
            .try_collect()
            .await?;
        for pair in headers.windows(2) {
            if let [parent, child] = pair
                && child.parent_hash != parent.hash
            {
                let detail = format!("block {} is not the parent of block {}", parent.number, child.number);
                return Err(ChainError::Inconsistent(detail));
            }
        }
        let parent_hash = headers.first().map_or(B256::ZERO, |first| first.parent_hash);
        let blocks: Vec<BlockEvents> = stream::iter(headers)
            .map(|header| self.block_events(header, skipped))
            .buffered(CONCURRENT)
            .try_collect()
            .await?;
        Ok(Blocks { parent_hash, blocks })
    }

    /// Returns the blocks of `from..=to` that contain logs of the hub or the Gate, using one log
    /// query. Fast over many blocks, but not checked against the headers.
    pub async fn read_logs(&self, from: u64, to: u64) -> Result<Vec<BlockEvents>, ChainError> {
        let mut blocks: Vec<BlockEvents> = Vec::new();
        for event in self.events(from, to).await? {
            match blocks.last_mut() {
                Some(block) if block.number == event.block_number => block.events.push(event),
                _ => {
                    let (number, hash) = (event.block_number, event.block_hash);
                    // Only some nodes return the block's time with a log.
                    let timestamp_s = match event.timestamp_s {
                        Some(timestamp_s) => timestamp_s,
                        None => self.header(number).await?.timestamp,
                    };
                    blocks.push(BlockEvents {
                        number,
                        hash,
                        timestamp_s,
                        events: vec![event],
                        logs_digest: None,
                    });
                }
            }
        }
        Ok(blocks)
    }

    /// Reads the block's logs again and returns their digest.
    ///
    /// # Errors
    ///
    /// `Inconsistent` if the block of this height no longer has this hash, or as for
    /// [`Self::read_blocks`].
    pub async fn logs_digest(&self, number: u64, hash: B256) -> Result<Option<B256>, ChainError> {
        let header = self.header(number).await?;
        if header.hash != hash {
            return Err(ChainError::Inconsistent(format!("block {number} has changed")));
        }
        Ok(self.block_events(header, &[]).await?.logs_digest)
    }

    pub(super) async fn header(&self, number: u64) -> Result<Header, ChainError> {
        let block = self.provider.get_block_by_number(number.into()).await.map_err(ChainError::of_read)?;
        let header = block.map(|block| block.header).ok_or_else(|| missing(number))?;
        // A node behind a load balancer can answer with another block than the requested one.
        if header.number == number { Ok(header) } else { Err(missing(number)) }
    }

    async fn block_events(&self, header: Header, skipped: &[u64]) -> Result<BlockEvents, ChainError> {
        let Header { hash, .. } = header;
        let (number, timestamp_s) = (header.number, header.timestamp);
        if skipped.contains(&number) {
            return Ok(BlockEvents { number, hash, timestamp_s, events: Vec::new(), logs_digest: None });
        }
        let logs = self.checked_logs(&header).await?;
        let (events, logs_digest) = (self.decode_logs(&logs)?, Some(digest(&logs)));
        Ok(BlockEvents { number, hash, timestamp_s, events, logs_digest })
    }

    /// Returns the logs of the hub and the Gate in a block, in order.
    async fn checked_logs(&self, header: &Header) -> Result<Vec<Log>, ChainError> {
        // Some chains leave the bloom filter empty even if transactions emitted logs: ignore it
        // then.
        let bloom = Some(header.logs_bloom).filter(|bloom| !bloom.is_zero() || header.gas_used == 0);
        let addresses = [self.contracts.hub, self.contracts.gate];
        let may_hold = |bloom: &Bloom| {
            addresses.iter().any(|address| bloom.contains_input(BloomInput::Raw(address.as_slice())))
        };
        if bloom.is_some_and(|bloom| !may_hold(&bloom)) {
            return Ok(Vec::new());
        }
        let filter = Filter::new().address(addresses.to_vec()).at_block_hash(header.hash);
        let mut logs = self.provider.get_logs(&filter).await.map_err(ChainError::of_read)?;
        // A sparse bloom filter that matches makes an empty answer suspicious: read the receipts.
        if logs.is_empty() && bloom.is_some_and(|bloom| bits_of(&bloom) <= DENSE_BLOOM_BITS) {
            logs = self.logs_in_receipts(header).await?;
        }
        logs.sort_by_key(|log| log.log_index);
        let is_of_block = |log: &Log| {
            !log.removed
                && log.block_hash == Some(header.hash)
                && log.block_number == Some(header.number)
                && addresses.contains(&log.address())
                && bloom.is_none_or(|bloom| bloom.contains_raw_log(log.address(), log.topics()))
        };
        let is_ordered = logs.is_sorted_by(|before, after| before.log_index < after.log_index);
        if is_ordered && logs.iter().all(is_of_block) {
            return Ok(logs);
        }
        Err(ChainError::Inconsistent(format!("logs of block {} belong to another block", header.number)))
    }

    /// Returns the same logs from the receipts of the block's transactions. Returns none if the
    /// node does not offer receipts by block.
    async fn logs_in_receipts(&self, header: &Header) -> Result<Vec<Log>, ChainError> {
        let block = (BlockId::hash(header.hash),);
        let receipts: Result<Option<Vec<BareReceipt>>, _> =
            self.provider.raw_request("eth_getBlockReceipts".into(), block).await;
        let receipts = match receipts.map_err(ChainError::of_read) {
            Ok(receipts) => receipts.ok_or_else(|| missing(header.number))?,
            // The node lacks this method. The sync reads the block again before it settles the
            // block.
            Err(ChainError::Rejected(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let is_ours = |log: &Log| [self.contracts.hub, self.contracts.gate].contains(&log.address());
        Ok(receipts.into_iter().flat_map(|receipt| receipt.logs).filter(is_ours).collect())
    }

    async fn read_embedded_blocks(&self, from: u64, to: u64) -> Result<Blocks, ChainError> {
        let first = self.block(from).await?.ok_or_else(|| missing(from))?;
        let last = if from == to { first } else { self.block(to).await?.ok_or_else(|| missing(to))? };
        let mut blocks = self.read_logs(from, to).await?;
        if blocks.last().is_none_or(|block| block.number < to) {
            let (number, hash, timestamp_s) = (last.number, last.hash, last.timestamp_s);
            blocks.push(BlockEvents { number, hash, timestamp_s, events: Vec::new(), logs_digest: None });
        }
        Ok(Blocks { parent_hash: first.parent_hash, blocks })
    }
}

fn missing(number: u64) -> ChainError {
    ChainError::Inconsistent(format!("block {number} is missing"))
}

fn bits_of(bloom: &Bloom) -> u32 {
    bloom.0.iter().map(|byte| byte.count_ones()).sum()
}

fn digest(logs: &[Log]) -> B256 {
    let mut hasher = Keccak256::new();
    for log in logs {
        hasher.update(log.log_index.unwrap_or_default().to_be_bytes());
        hasher.update(log.transaction_hash.unwrap_or_default());
        hasher.update(log.address());
        hasher.update([log.topics().len() as u8]);
        log.topics().iter().for_each(|topic| hasher.update(topic));
        hasher.update((log.data().data.len() as u64).to_be_bytes());
        hasher.update(&log.data().data);
    }
    hasher.finalize()
}
