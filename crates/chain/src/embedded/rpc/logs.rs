//! `eth_getLogs`: recent blocks from memory, older ones from the database, a block decoded only where its bloom says so.

use alloy::rpc::types::{Filter, FilterBlockOption, Log};

use super::super::EmbeddedNode;
use super::super::block::SealedBlock;
use super::super::error::{EmbeddedError, RpcError};
use super::super::storage;
use super::blocks::log_view;
use super::params::Params;
use super::{Answer, json};

/// Logs of one answer at most.
const MAX_LOGS: usize = 10_000;

impl EmbeddedNode {
    pub(super) fn logs(&self, params: &Params<'_>, max_blocks: u64) -> Answer {
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
                // The recent blocks are taken out first: what leaves the memory meanwhile is in the database already.
                let recent: Vec<_> =
                    chain.recent_from(from).take_while(|block| block.header.number <= to).cloned().collect();
                let old = from..chain.oldest_recent().min(to + 1);
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
