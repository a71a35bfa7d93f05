//! Tests of reads at old blocks.

use alloy::rpc::types::{Block, TransactionReceipt};
use alloy_primitives::{Address, B256, Bytes, U64, U256};
use serde_json::{Value, json};

use crate::support::{Folder, World};

#[test]
fn a_call_at_an_old_block_reads_its_state() {
    let world = World::in_memory();
    let contract = world.deploy();
    world.count_each(1..5, contract);
    for number in 1_u64..=5 {
        let count = world.call(contract, 1, json!(format!("{number:#x}"))).unwrap();
        assert_eq!(count, U256::from(number - 1), "block {number}");
    }
    let code: Bytes = world.ask("eth_getCode", json!([contract, "0x0"])).unwrap();
    assert!(code.is_empty(), "nothing was there before the deployment");
    let nonce: U64 = world.ask("eth_getTransactionCount", json!([world.key.address(), "0x3"])).unwrap();
    assert_eq!(nonce, U64::from(3));
    let slot: B256 = world.ask("eth_getStorageAt", json!([contract, "0x0", "0x4"])).unwrap();
    assert_eq!(slot, B256::with_last_byte(3));
    let balance: U256 = world.ask("eth_getBalance", json!([Address::repeat_byte(1), "0x1"])).unwrap();
    assert_eq!(balance, U256::ZERO);
}

#[test]
fn a_block_may_be_named_by_hash() {
    let world = World::in_memory();
    let contract = world.deploy();
    let (_, hash) = world.node.head();
    world.count(1, contract);
    assert_eq!(world.call(contract, 1, json!(hash)).unwrap(), U256::ZERO);
    assert_eq!(world.call(contract, 1, json!({ "blockHash": hash })).unwrap(), U256::ZERO);
    let unknown = world.call(contract, 1, json!("0x99")).unwrap_err();
    assert_eq!((unknown.code, unknown.message.as_ref()), (-32000, "header not found"));
}

#[test]
fn history_survives_a_restart() {
    let folder = Folder::new();
    let (contract, hash) = {
        let world = World::open(&folder.chain());
        let contract = world.deploy();
        let hash = world.count(1, contract);
        world.count(2, contract);
        (contract, hash)
    };
    let world = World::open(&folder.chain());
    assert_eq!(world.call(contract, 1, json!("0x2")).unwrap(), U256::from(1));
    let receipt: TransactionReceipt = world.ask("eth_getTransactionReceipt", json!([hash])).unwrap();
    assert_eq!((receipt.block_number, receipt.logs().len()), (Some(2), 1));
    let block: Block = world.ask("eth_getBlockByNumber", json!(["0x2", true])).unwrap();
    assert_eq!(block.header.inner.hash_slow(), block.header.hash);
    let same: Value = world.ask("eth_getBlockByHash", json!([block.header.hash, false])).unwrap();
    assert_eq!(same["number"], json!("0x2"));
}

#[test]
fn blocks_beyond_the_memory_limit_stay_readable() {
    let world = World::in_memory();
    let contract = world.deploy();
    let first = world.count(1, contract);
    for _ in 0..1_100 {
        world.node.mine().unwrap();
    }
    let receipt: TransactionReceipt = world.ask("eth_getTransactionReceipt", json!([first])).unwrap();
    assert_eq!(receipt.block_number, Some(2));
    let block: Block = world.ask("eth_getBlockByNumber", json!(["0x1", true])).unwrap();
    assert_eq!(block.transactions.len(), 1);
    assert_eq!(world.call(contract, 1, json!("0x1")).unwrap(), U256::ZERO);
    let again = world.send(&world.sign(1, contract.into(), Bytes::new())).unwrap_err();
    assert_eq!(again.message, "already known");
}
