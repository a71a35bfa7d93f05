//! Tests of `eth_getLogs`.

use alloy::consensus::TxEip1559;
use alloy::rpc::types::Log;
use alloy_primitives::{Address, B256, TxKind, U256};
use serde_json::{Value, json};

use crate::support::{COUNTED, Folder, World, deployment, sign, transaction};

fn logs(world: &World, filter: Value) -> Vec<Log> {
    world.ask("eth_getLogs", json!([filter])).unwrap()
}

#[test]
fn logs_are_found_by_address_topic_and_range() {
    let world = World::in_memory();
    let contract = world.deploy();
    let hashes = world.count_each(1..4, contract);
    let all =
        json!({ "fromBlock": "earliest", "toBlock": "latest", "address": contract, "topics": [COUNTED] });
    let found = logs(&world, all);
    assert_eq!(found.iter().map(|log| log.transaction_hash.unwrap()).collect::<Vec<_>>(), hashes);
    assert_eq!(U256::from_be_slice(&found[2].inner.data.data), U256::from(3));
    assert_eq!((found[0].block_number, found[0].log_index), (Some(2), Some(0)));

    let some = json!({ "fromBlock": "0x3", "toBlock": "0x3" });
    assert_eq!(logs(&world, some).len(), 1);
    let either = json!({ "fromBlock": "0x0", "address": [Address::ZERO, contract], "topics": [[B256::ZERO, COUNTED]] });
    assert_eq!(logs(&world, either).len(), 3);
    let neither = json!({ "fromBlock": "0x0", "topics": [[B256::ZERO]] });
    assert!(logs(&world, neither).is_empty());
    let too_deep = json!({ "fromBlock": "0x0", "topics": [COUNTED, COUNTED] });
    assert!(logs(&world, too_deep).is_empty());
    assert_eq!(logs(&world, json!({})).len(), 1, "without a range it is the newest block");
}

#[test]
fn logs_of_one_block_are_found_by_its_hash() {
    let world = World::in_memory();
    let contract = world.deploy();
    world.count(1, contract);
    let (_, hash) = world.node.head();
    world.count(2, contract);
    assert_eq!(logs(&world, json!({ "blockHash": hash })).len(), 1);
    let unknown =
        world.ask::<Vec<Log>>("eth_getLogs", json!([{ "blockHash": B256::repeat_byte(1) }])).unwrap_err();
    assert_eq!((unknown.code, unknown.message.as_ref()), (-32000, "unknown block"));
}

#[test]
fn a_reversed_range_is_rejected() {
    let world = World::in_memory();
    let error =
        world.ask::<Vec<Log>>("eth_getLogs", json!([{ "fromBlock": "0x5", "toBlock": "0x1" }])).unwrap_err();
    assert_eq!(error.code, -32602);
}

#[test]
fn logs_older_than_the_memory_are_read_from_the_database() {
    let folder = Folder::new();
    let contract = {
        let world = World::open(&folder.chain());
        let contract = world.deploy();
        world.count_each(1..6, contract);
        contract
    };
    let world = World::open(&folder.chain());
    world.count(6, contract);
    let filter = json!({ "fromBlock": "0x0", "address": contract, "topics": [COUNTED] });
    let counts: Vec<U256> =
        logs(&world, filter).iter().map(|log| U256::from_be_slice(&log.inner.data.data)).collect();
    assert_eq!(counts, (1..7).map(U256::from).collect::<Vec<_>>());
}

#[test]
fn more_logs_than_the_limit_are_rejected() {
    // Runtime code: emits 10,001 empty logs.
    let runtime =
        [0x61, 0x27, 0x11, 0x5b, 0x5f, 0x5f, 0xa0, 0x60, 0x01, 0x90, 0x03, 0x80, 0x60, 0x03, 0x57, 0x00];
    let world = World::in_memory();
    world.send(&world.sign(0, TxKind::Create, deployment(&runtime))).unwrap();
    let to = TxKind::Call(world.key.address().create(0));
    world.send(&sign(&world.key, TxEip1559 { to, gas_limit: 10_000_000, ..transaction(1) })).unwrap();
    let error = world.ask::<Vec<Log>>("eth_getLogs", json!([{ "fromBlock": "0x0" }])).unwrap_err();
    assert_eq!(error.code, -32005);
}
