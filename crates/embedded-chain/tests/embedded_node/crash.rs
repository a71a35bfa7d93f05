//! Tests of the state after a crash. The child process is this test binary, started again to run
//! one test until it is killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use alloy::rpc::types::{Block, TransactionReceipt};
use alloy_primitives::{B256, U64, U256};
use serde_json::json;

use crate::support::{Folder, World};

const CHILD: &str = "FORETELL_EMBEDDED_CHILD";

#[test]
fn a_killed_process_keeps_whole_blocks_and_every_acknowledged_send() {
    let folder = Folder::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_sends_until_it_is_killed", "--nocapture"])
        .env(CHILD, folder.chain())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answered: Vec<B256> =
        lines.filter_map(|line| line.strip_prefix("mined ")?.parse().ok()).take(40).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(answered.len(), 40);

    let world = World::open(&folder.chain());
    for hash in &answered {
        let receipt: Option<TransactionReceipt> =
            world.ask("eth_getTransactionReceipt", json!([hash])).unwrap();
        assert!(receipt.is_some_and(|receipt| receipt.status()), "{hash} was answered, so it is durable");
    }
    // The first block deploys and each later one counts once, so nonce, count and head imply the
    // same number of blocks.
    let head = world.head();
    let nonce: U64 = world.ask("eth_getTransactionCount", json!([world.key.address()])).unwrap();
    assert_eq!(nonce, U64::from(head));
    let contract = world.key.address().create(0);
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::from(head - 1));
    let mut parent: Block = world.ask("eth_getBlockByNumber", json!(["0x0"])).unwrap();
    for number in 1..=head {
        let block: Block = world.ask("eth_getBlockByNumber", json!([format!("{number:#x}")])).unwrap();
        assert_eq!(block.header.parent_hash, parent.header.hash);
        parent = block;
    }
    world.count(head, contract);
}

/// Does nothing unless it runs as the child of the test above.
#[test]
fn child_sends_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let world = World::open(path.as_ref());
    let contract = world.deploy();
    for nonce in 1..10_000 {
        println!("mined {}", world.count(nonce, contract));
    }
}

#[test]
fn a_failed_write_mines_nothing_and_is_reported() {
    let folder = Folder::new();
    let world = World::open(&folder.chain());
    let contract = world.deploy();
    let head = world.node.head();

    // Another connection inserts the next block's number, so the commit of that block must fail.
    let intruder = rusqlite::Connection::open(folder.chain()).unwrap();
    intruder.execute("INSERT INTO blocks (number, hash, header) VALUES (2, x'00', x'00')", []).unwrap();
    let raw = world.sign(1, contract.into(), Vec::new());
    let error = world.send(&raw).unwrap_err();
    assert_eq!(error.code, -32603);
    assert_eq!(world.node.head(), head);
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::ZERO);

    // After the row is removed, the same bytes are mined.
    intruder.execute("DELETE FROM blocks WHERE number = 2", []).unwrap();
    world.send(&raw).unwrap();
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::from(1));
    drop(world);
    assert_eq!(World::open(&folder.chain()).call(contract, 1, json!("latest")).unwrap(), U256::from(1));
}
