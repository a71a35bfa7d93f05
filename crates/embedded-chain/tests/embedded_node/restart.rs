//! Tests of reopening a chain's file, and of deterministic block hashes.

use std::sync::Arc;

use alloy::rpc::types::TransactionReceipt;
use alloy_primitives::{B256, Bytes, U64, U256};
use domain::Timestamp;
use domain::time::ManualClock;
use embedded_chain::{EmbeddedError, EmbeddedNode, Genesis};
use serde_json::json;

use crate::support::{Folder, START_S, World, genesis};

#[test]
fn a_restart_finds_the_same_chain() {
    let folder = Folder::new();
    let (contract, hash, head, receipt) = {
        let world = World::open(&folder.chain());
        let contract = world.deploy();
        let hash = world.count(1, contract);
        let receipt: TransactionReceipt = world.ask("eth_getTransactionReceipt", json!([hash])).unwrap();
        (contract, hash, world.node.head(), receipt)
    };
    let world = World::open(&folder.chain());
    assert_eq!(world.node.head(), head);
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::from(1));
    assert_eq!(world.ask::<TransactionReceipt>("eth_getTransactionReceipt", json!([hash])).unwrap(), receipt);
    let nonce: U64 = world.ask("eth_getTransactionCount", json!([world.key.address()])).unwrap();
    assert_eq!(nonce, U64::from(2));
    world.count(2, contract);
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::from(2));
}

#[test]
fn another_genesis_is_ignored_but_another_chain_id_is_rejected() {
    let folder = Folder::new();
    let head = World::open(&folder.chain()).node.head();
    let clock = Arc::new(ManualClock::new(Timestamp::from_s(START_S)));
    let richer = Genesis { base_fee: 1, balances: vec![], ..genesis() };
    let node = EmbeddedNode::open(&folder.chain(), richer, clock.clone()).unwrap();
    assert_eq!(node.head(), head);
    drop(node);
    let other = Genesis { chain_id: 1, ..genesis() };
    let error = EmbeddedNode::open(&folder.chain(), other, clock).unwrap_err();
    assert!(matches!(error, EmbeddedError::ChainId { stored: 31_337, asked: 1 }), "{error}");
}

#[test]
fn every_proof_of_a_write_is_written_to_the_log() {
    let folder = Folder::new();
    let world = World::open(&folder.chain());
    let log = folder.chain().with_extension("sqlite-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let mut before = length();
    for _ in 0..3 {
        world.node.probe_write().unwrap();
        let after = length();
        assert!(after > before, "{before} {after}");
        before = after;
    }
}

#[test]
fn the_same_history_makes_the_same_hashes() {
    let [first, second] = [World::in_memory(), World::in_memory()].map(|world| {
        let contract = world.deploy();
        world.count(1, contract);
        world.node.head()
    });
    assert_eq!(first, second);
}

#[test]
fn a_fork_has_the_same_past_and_its_own_future() {
    let folder = Folder::new();
    for world in [World::in_memory(), World::open(&folder.chain())] {
        let contract = world.deploy();
        world.count(1, contract);
        let head = world.node.head();
        let node = world.node.fork(world.clock.clone()).unwrap();
        let fork = World { node, clock: world.clock.clone(), key: world.key.clone() };
        assert_eq!(fork.node.head(), head);

        fork.count(2, contract);
        assert_eq!((world.node.head(), fork.node.head().0), (head, head.0 + 1));
        world.count(2, contract);
        assert_eq!(world.node.head(), fork.node.head(), "the same history makes the same hashes");
    }
}

#[test]
fn a_slot_set_to_zero_stays_zero_after_a_restart() {
    // Runtime code: stores the first word of the input in slot 0.
    let runtime = [0x60, 0x00, 0x35, 0x60, 0x00, 0x55, 0x00];
    let folder = Folder::new();
    let contract = {
        let world = World::open(&folder.chain());
        let contract = world.key.address().create(0);
        world
            .send(&world.sign(0, alloy_primitives::TxKind::Create, crate::support::deployment(&runtime)))
            .unwrap();
        for (nonce, value) in [(1, B256::repeat_byte(5)), (2, B256::ZERO)] {
            world.send(&world.sign(nonce, contract.into(), Bytes::from(value.0))).unwrap();
        }
        contract
    };
    let world = World::open(&folder.chain());
    let slot = |block: &str| world.ask::<B256>("eth_getStorageAt", json!([contract, "0x0", block])).unwrap();
    assert_eq!([slot("0x1"), slot("0x2"), slot("0x3")], [B256::ZERO, B256::repeat_byte(5), B256::ZERO]);
}
