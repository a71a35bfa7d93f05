//! Blocks with what the hub and the Gate logged in them, checked against their own headers.
//!
//! An address of a node often stands for several nodes of different heights. A question by number can then be answered by
//! a node that does not have the block yet, with an empty list. So logs are asked for by block hash, which such a node must
//! refuse; headers must form a chain; and the logs must fit their header's bloom. If the bloom says that a contract logged
//! something and no log came, the block's receipts decide.

use alloy::eips::BlockId;
use alloy::providers::Provider;
use alloy::rpc::types::{Filter, Header, Log};
use alloy_primitives::{B256, Bloom, BloomInput, Keccak256};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;

use super::chain::Chain;
use super::error::ChainError;
use super::event::Event;

/// Questions to the node that are open at once.
const CONCURRENT: usize = 16;

/// A bloom with more bits than this (of 2048) matches most addresses: it says too little to ask for receipts.
const DENSE_BLOOM_BITS: u32 = 1_024;

/// Consecutive blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// The hash of the block before the first one.
    pub parent_hash: B256,
    /// The blocks in order. Of the embedded chain only those with events, and the last one.
    pub blocks: Vec<BlockEvents>,
}

/// A block and what the hub and the Gate logged in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEvents {
    /// Its height.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// Its time, Unix seconds.
    pub timestamp_s: u64,
    /// What was logged, in order.
    pub events: Vec<Event>,
    /// A digest of the logs, for comparing two readings of the block. Absent if a second reading can say nothing new:
    /// of the embedded chain, and of a skipped block.
    pub logs_digest: Option<B256>,
}

/// Only what is common to the receipts of all chains: some have transactions that others do not know.
#[derive(Debug, Deserialize)]
struct BareReceipt {
    logs: Vec<Log>,
}

impl Chain {
    /// The blocks `from..=to` with their events. Those of `skipped` blocks are not asked for.
    ///
    /// # Errors
    /// `Inconsistent` if a block is missing, the blocks are not each other's parents, or logs do not fit their block; and
    /// what else a read gives.
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

    /// The blocks of `from..=to` in which the hub or the Gate logged something, by one question for their logs: quick over
    /// many blocks, and not checked against their headers.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn read_logs(&self, from: u64, to: u64) -> Result<Vec<BlockEvents>, ChainError> {
        let mut blocks: Vec<BlockEvents> = Vec::new();
        for event in self.events(from, to).await? {
            match blocks.last_mut() {
                Some(block) if block.number == event.block_number => block.events.push(event),
                _ => {
                    let (number, hash) = (event.block_number, event.block_hash);
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

    /// The digest of what the hub and the Gate logged in the block with this hash, read anew.
    ///
    /// # Errors
    /// As [`Self::read_blocks`].
    pub async fn logs_digest(&self, number: u64, hash: B256) -> Result<Option<B256>, ChainError> {
        let header = self.header(number).await?;
        if header.hash != hash {
            return Err(ChainError::Inconsistent(format!("block {number} has changed")));
        }
        Ok(self.block_events(header, &[]).await?.logs_digest)
    }

    async fn header(&self, number: u64) -> Result<Header, ChainError> {
        let block = self.provider.get_block_by_number(number.into()).await.map_err(ChainError::of_read)?;
        let header = block.map(|block| block.header).ok_or_else(|| missing(number))?;
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

    /// The logs of the hub and the Gate in a block, in order.
    async fn checked_logs(&self, header: &Header) -> Result<Vec<Log>, ChainError> {
        // Some chains leave the bloom empty whatever was logged.
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
        Err(ChainError::Inconsistent(format!("logs of block {} are not its own", header.number)))
    }

    /// The same from the receipts of all transactions of the block; empty if the node cannot give them.
    async fn logs_in_receipts(&self, header: &Header) -> Result<Vec<Log>, ChainError> {
        let block = (BlockId::hash(header.hash),);
        let receipts: Result<Option<Vec<BareReceipt>>, _> =
            self.provider.raw_request("eth_getBlockReceipts".into(), block).await;
        let receipts = match receipts.map_err(ChainError::of_read) {
            Ok(receipts) => receipts.ok_or_else(|| missing(header.number))?,
            // The node does not have the method. The block is read again before it is settled.
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
