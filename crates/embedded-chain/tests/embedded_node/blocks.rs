//! Tests of the methods for blocks, transactions, receipts, fees and the node's identity.

use alloy::consensus::ReceiptEnvelope;
use alloy::consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use alloy::rpc::types::{Block, FeeHistory, Transaction, TransactionReceipt};
use alloy_primitives::{B256, U64, U256};
use serde_json::{Value, json};

use crate::support::{GWEI, START_S, World};

fn block(world: &World, id: Value) -> Option<Block> {
    let method = if id.as_str().is_some_and(|id| id.len() == 66) {
        "eth_getBlockByHash"
    } else {
        "eth_getBlockByNumber"
    };
    world.ask(method, json!([id, true])).unwrap()
}

#[test]
fn blocks_are_linked_by_real_hashes_and_roots() {
    let world = World::in_memory();
    let contract = world.deploy();
    world.count(1, contract);
    let mut parent = block(&world, json!("earliest")).unwrap();
    for number in 1..=2 {
        let block = block(&world, json!(format!("{number:#x}"))).unwrap();
        assert_eq!(block.header.inner.hash_slow(), block.header.hash);
        assert_eq!(block.header.parent_hash, parent.header.hash);
        assert_ne!(block.header.state_root, parent.header.state_root);
        let transactions: Vec<_> = block
            .transactions
            .as_transactions()
            .unwrap()
            .iter()
            .map(|one| one.inner.inner().clone())
            .collect();
        assert_eq!(calculate_transaction_root(&transactions), block.header.transactions_root);
        let receipts: Vec<TransactionReceipt> =
            world.ask("eth_getBlockReceipts", json!([block.header.hash])).unwrap();
        let receipts: Vec<ReceiptEnvelope> =
            receipts.into_iter().map(|receipt| receipt.inner.into_primitives_receipt()).collect();
        assert_eq!(calculate_receipt_root(&receipts), block.header.receipts_root);
        assert_eq!(*receipts[0].logs_bloom(), block.header.logs_bloom);
        parent = block;
    }
}

#[test]
fn every_tag_but_earliest_is_the_newest_block() {
    let world = World::in_memory();
    world.deploy();
    for tag in ["latest", "pending", "safe", "finalized", "0x1"] {
        assert_eq!(block(&world, json!(tag)).unwrap().header.number, 1, "{tag}");
    }
    assert_eq!(block(&world, json!("earliest")).unwrap().header.number, 0);
    assert!(block(&world, json!("0x2")).is_none());
    assert!(block(&world, json!(B256::repeat_byte(1))).is_none());
}

#[test]
fn block_time_follows_the_clock_and_never_goes_back() {
    let world = World::in_memory();
    let contract = world.deploy();
    world.clock.advance(60_500);
    world.count(1, contract);
    world.clock.advance(-3_600_000);
    world.count(2, contract);
    let times: Vec<u64> =
        (0..4).map(|number| block(&world, json!(format!("{number:#x}"))).unwrap().header.timestamp).collect();
    assert_eq!(times, [START_S, START_S, START_S + 60, START_S + 60]);
}

#[test]
fn a_block_can_be_mined_without_a_transaction() {
    let world = World::in_memory();
    world.clock.advance(5_000);
    assert_eq!(world.ask::<U64>("foretell_mine", json!([])).unwrap(), U64::from(1));
    assert_eq!(world.ask::<String>("evm_mine", json!([])).unwrap(), "0x0");
    assert_eq!(world.node.mine().unwrap(), 3);
    let mined = block(&world, json!("0x1")).unwrap();
    assert_eq!(mined.header.timestamp, START_S + 5);
    assert!(mined.transactions.is_empty());
    let receipts: Vec<Value> = world.ask("eth_getBlockReceipts", json!(["0x1"])).unwrap();
    assert!(receipts.is_empty());
}

#[test]
fn a_transaction_is_found_by_hash_and_by_position() {
    let world = World::in_memory();
    let contract = world.deploy();
    let hash = world.count(1, contract);
    let found: Transaction = world.ask("eth_getTransactionByHash", json!([hash])).unwrap();
    assert_eq!((found.block_number, found.transaction_index), (Some(2), Some(0)));
    assert_eq!(found.inner.signer(), world.key.address());
    let place: Value = world.ask("eth_getTransactionByBlockNumberAndIndex", json!(["0x2", "0x0"])).unwrap();
    assert_eq!(place["hash"], json!(hash));
    let beyond: Value = world.ask("eth_getTransactionByBlockNumberAndIndex", json!(["0x2", "0x1"])).unwrap();
    assert!(beyond.is_null());
    let count: U64 = world.ask("eth_getBlockTransactionCountByNumber", json!(["0x2"])).unwrap();
    assert_eq!(count, U64::from(1));
    let nothing: Value = world.ask("eth_getTransactionReceipt", json!([B256::repeat_byte(9)])).unwrap();
    assert!(nothing.is_null());
}

#[test]
fn a_block_lists_hashes_unless_full_transactions_are_requested() {
    let world = World::in_memory();
    let contract = world.deploy();
    let hash = world.count(1, contract);
    let brief: Value = world.ask("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    assert_eq!(brief["transactions"], json!([hash]));
    let whole: Value = world.ask("eth_getBlockByNumber", json!(["latest", true])).unwrap();
    assert_eq!(whole["transactions"][0]["hash"], json!(hash));
    assert_eq!(whole["transactions"][0]["to"], json!(contract));
}

#[test]
fn fees_are_constant() {
    let world = World::in_memory();
    world.deploy();
    assert_eq!(world.ask::<U256>("eth_gasPrice", json!([])).unwrap(), U256::from(GWEI));
    assert_eq!(world.ask::<U256>("eth_maxPriorityFeePerGas", json!([])).unwrap(), U256::ZERO);
    for count in [json!("0x5"), json!(5)] {
        let history: FeeHistory =
            world.ask("eth_feeHistory", json!([count, "latest", [10.0, 90.0]])).unwrap();
        assert_eq!(history.oldest_block, 0);
        assert_eq!(history.base_fee_per_gas, vec![GWEI; 3]);
        assert_eq!(history.reward.unwrap(), vec![vec![0, 0]; 2]);
    }
}

#[test]
fn the_node_identifies_itself() {
    let world = World::in_memory();
    assert_eq!(world.ask::<String>("eth_chainId", json!([])).unwrap(), "0x7a69");
    assert_eq!(world.ask::<String>("net_version", json!([])).unwrap(), "31337");
    assert!(world.ask::<String>("web3_clientVersion", json!([])).unwrap().starts_with("foretell/"));
    assert!(!world.ask::<bool>("eth_syncing", json!([])).unwrap());
    assert!(world.ask::<Vec<Value>>("eth_accounts", json!([])).unwrap().is_empty());
}
