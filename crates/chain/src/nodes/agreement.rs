//! Finds the blocks on which enough nodes agree.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use futures::future::join_all;

use super::Nodes;
use super::node::Node;
use crate::block::Block;
use crate::error::ChainError;

impl Nodes {
    /// Returns the hash at this height on which the configured number of nodes agree, if they are
    /// also more than half of the nodes that have the block. `None` otherwise. Nodes with another
    /// hash are not used again until they have this one.
    ///
    /// # Errors
    ///
    /// `Unreachable` if no node can be used. If all nodes fail, the error of one of them.
    pub async fn agreed_hash(&self, number: u64) -> Result<Option<B256>, ChainError> {
        let nodes = self.admitted().await;
        let hashes = self.answers(join_all(nodes.iter().map(|node| node.block(number))).await)?;
        let mut counts: BTreeMap<B256, usize> = BTreeMap::new();
        for hash in hashes.iter().flatten().map(|block| block.hash) {
            *counts.entry(hash).or_default() += 1;
        }
        let answered: usize = counts.values().sum();
        let Some((hash, count)) = counts.iter().max_by_key(|(_, count)| **count) else { return Ok(None) };
        let is_most = *count * 2 > answered;
        if counts.len() > 1 {
            tracing::warn!(block = number, ?counts, "the nodes disagree on a block");
        }
        if *count < self.agreement || !is_most {
            return Ok(None);
        }
        if counts.len() > 1 {
            // The nodes disagree: check each again, so that those with another hash are excluded.
            self.expected.lock().agreed = Some((number, *hash));
            self.nodes.iter().for_each(|node| node.distrust());
        }
        Ok(Some(*hash))
    }

    /// Returns the newest block that the configured number of nodes report as final.
    ///
    /// # Errors
    ///
    /// As for [`Self::agreed_hash`].
    pub async fn finalized(&self) -> Result<Option<Block>, ChainError> {
        let nodes = self.admitted().await;
        let finalized = join_all(nodes.iter().map(|node| node.finalized())).await;
        let mut finalized: Vec<Block> = self.answers(finalized)?.into_iter().flatten().collect();
        finalized.sort_unstable_by_key(|block| std::cmp::Reverse(block.number));
        // Sorted by descending height: at least `agreement` nodes report this block or a later one.
        Ok(finalized.get(self.agreement - 1).copied())
    }

    /// Returns the nodes that can be used now, and checks them if necessary.
    async fn admitted(&self) -> Vec<&Node> {
        let expected = *self.expected.lock();
        let open: Vec<&Node> =
            self.nodes.iter().map(AsRef::as_ref).filter(|node: &&Node| node.is_open()).collect();
        let admitted = join_all(open.iter().map(|node| node.admit(&expected))).await;
        open.into_iter().zip(admitted).filter(|(_, admitted)| *admitted).map(|(node, _)| node).collect()
    }

    /// Returns the successful answers. Fails only if no node answered.
    fn answers<T>(&self, asked: Vec<Result<T, ChainError>>) -> Result<Vec<T>, ChainError> {
        let mut answers = Vec::new();
        let mut failure = None;
        for answer in asked {
            match answer {
                Ok(answer) => answers.push(answer),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            _ if !answers.is_empty() => Ok(answers),
            Some(error) => Err(error),
            None => Err(ChainError::of_read(self.unavailable())),
        }
    }
}
