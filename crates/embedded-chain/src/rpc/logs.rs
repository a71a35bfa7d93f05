//! Implements `eth_getLogs`. Reads recent blocks from memory and older ones from the database, and
//! decodes a block only if its bloom filter matches.

use alloy::rpc::types::{Filter, FilterBlockOption, Log};

use super::blocks::log_view;
use super::params::Params;
use super::{RpcResult, json};
use crate::EmbeddedNode;
use crate::block::SealedBlock;
use crate::error::{EmbeddedError, RpcError};
use crate::storage;

/// The maximum number of logs in one response.
const MAX_LOGS: usize = 10_000;

impl EmbeddedNode {
    pub(super) fn logs(&self, params: &Params<'_>, max_blocks: u64) -> RpcResult {
        let filter: Filter = params.get(0)?;
        let mut found = Found { filter, logs: Vec::new(), full: false };
        match found.filter.block_option {
            FilterBlockOption::AtBlockHash(hash) => {
                let block = self.find_block(&self.shared.chain.read(), hash.into())?;
                let block = block.ok_or_else(|| RpcError::refused("unknown block"))?;
                found.search(&block);
            }
            FilterBlockOption::Range { from_block, to_block } => {
                let chain = self.shared.chain.read();
                let head = chain.head().header.number;
                let from = from_block.map_or(head, |tag| self.number_of(&chain, tag));
                let to = to_block.map_or(head, |tag| self.number_of(&chain, tag));
                if from > to {
                    return Err(RpcError::params("invalid block range params"));
                }
                let to = to.min(head);
                if to.saturating_sub(from) >= max_blocks {
                    return Err(RpcError::limit(format!("query exceeds {max_blocks} blocks")));
                }
                // Copy the recent blocks before reading the database. A block that leaves memory in
                // the meantime is already copied.
                let recent: Vec<_> =
                    chain.recent_from(from).take_while(|block| block.header.number <= to).cloned().collect();
                let old = from..chain.oldest_recent().min(to + 1);
                // Release the lock before the slow scan, so that new blocks do not wait for it.
                drop(chain);
                if !old.is_empty() {
                    self.shared.archive.read(|connection| {
                        storage::scan(connection, old, |stored| {
                            let bloom = stored.header()?.logs_bloom;
                            if found.filter.matches_bloom(bloom) {
                                found.search(&stored.decode()?);
                            }
                            Ok::<_, EmbeddedError>(!found.full)
                        })
                    })?;
                }
                for block in recent {
                    if found.filter.matches_bloom(block.header.logs_bloom) {
                        found.search(&block);
                    }
                }
            }
        }
        match found.full {
            true => Err(RpcError::limit(format!("query returned more than {MAX_LOGS} results"))),
            false => json(&found.logs),
        }
    }
}

struct Found {
    filter: Filter,
    logs: Vec<Log>,
    full: bool,
}

impl Found {
    fn search(&mut self, block: &SealedBlock) {
        let Some(mined) = &block.mined else { return };
        for (index, log) in mined.logs().iter().enumerate() {
            if !self.filter.matches(log) {
                continue;
            }
            if self.logs.len() == MAX_LOGS {
                self.full = true;
                return;
            }
            self.logs.push(log_view(block, mined.hash(), index, log));
        }
    }
}
