//! Identifies the chain that a node must serve: by its id, its genesis block and the last settled
//! block.

use alloy_primitives::B256;
use serde::{Deserialize, Serialize};

/// The identity of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainIdentity {
    pub chain_id: u64,
    /// The hash of block 0; `None` if no node had that block.
    pub genesis_hash: Option<B256>,
}

/// The known facts about the expected chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// `None` until the chain is known.
    pub identity: Option<ChainIdentity>,
    /// The number and hash of the last settled block.
    pub settled: Option<(u64, B256)>,
    /// The number and hash of a block on which most nodes agree while others disagree.
    pub agreed: Option<(u64, B256)>,
}

/// A node's claims about its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub identity: ChainIdentity,
    /// The node's hash at the height of the settled block; `None` if it has no such block.
    pub settled: Option<B256>,
    /// The node's hash at the height of the agreed block; `None` if it has no such block.
    pub agreed: Option<B256>,
    pub head: u64,
    /// The time at which the newest block was made.
    pub head_at_s: u64,
}

impl Expected {
    /// Returns the reason why a node with this claim must not be used, if there is one.
    pub fn contradiction(&self, claim: &Claim) -> Option<String> {
        let Claim { identity: ChainIdentity { chain_id, genesis_hash }, settled, agreed, .. } = *claim;
        if let Some(expected) = self.identity {
            if expected.chain_id != chain_id {
                return Some(format!("it answers for chain {chain_id} instead of {}", expected.chain_id));
            }
            // Nodes without old blocks report no genesis hash: accept them.
            if differ(expected.genesis_hash, genesis_hash) {
                return Some("its first block is that of another chain".to_owned());
            }
        }
        if differ(self.settled.map(|(_, hash)| hash), settled) {
            let number = self.settled.map_or(0, |(number, _)| number);
            return Some(format!("its block {number} is not the one that was settled"));
        }
        if differ(self.agreed.map(|(_, hash)| hash), agreed) {
            let number = self.agreed.map_or(0, |(number, _)| number);
            return Some(format!("its block {number} is not the one that most nodes have"));
        }
        None
    }
}

fn differ(expected: Option<B256>, found: Option<B256>) -> bool {
    matches!((expected, found), (Some(expected), Some(found)) if expected != found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: B256 = B256::repeat_byte(1);
    const TWO: B256 = B256::repeat_byte(2);

    fn claim() -> Claim {
        let identity = ChainIdentity { chain_id: 7, genesis_hash: Some(ONE) };
        Claim { identity, settled: Some(TWO), agreed: None, head: 9, head_at_s: 1 }
    }

    #[test]
    fn a_different_id_first_block_or_settled_block_contradicts() {
        let expected = Expected { identity: Some(claim().identity), settled: Some((5, TWO)), agreed: None };
        assert_eq!(expected.contradiction(&claim()), None);
        let other_id = ChainIdentity { chain_id: 8, ..claim().identity };
        let other_genesis = ChainIdentity { genesis_hash: Some(TWO), ..claim().identity };
        for wrong in [
            Claim { identity: other_id, ..claim() },
            Claim { identity: other_genesis, ..claim() },
            Claim { settled: Some(ONE), ..claim() },
        ] {
            assert!(expected.contradiction(&wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn a_node_that_is_behind_or_lacks_old_blocks_does_not_contradict() {
        let expected = Expected { identity: Some(claim().identity), settled: Some((5, TWO)), agreed: None };
        let pruned = ChainIdentity { genesis_hash: None, ..claim().identity };
        assert_eq!(expected.contradiction(&Claim { identity: pruned, settled: None, ..claim() }), None);
        assert_eq!(Expected::default().contradiction(&claim()), None);
    }
}
