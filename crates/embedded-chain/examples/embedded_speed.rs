//! Measures the throughput of the embedded chain: `cargo run --release -p embedded-chain --example
//! embedded_speed`.
//!
//! The transaction resembles a trade: it writes eight storage slots, five of them shared by all
//! transactions, and emits three logs. `probe` is the time of an `fdatasync` on the same disk,
//! measured in the same run. Compare every durable figure with it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::float_arithmetic,
    reason = "a program for people, not part of the service"
)]

use std::sync::Arc;
use std::time::Instant;

use alloy::consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy::eips::eip2718::Encodable2718 as _;
use alloy::network::TransactionBuilder as _;
use alloy::providers::Provider as _;
use alloy::rpc::types::TransactionRequest;
use alloy::signers::SignerSync as _;
use alloy::signers::local::PrivateKeySigner;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use domain::Timestamp;
use domain::time::SystemClock;
use embedded_chain::{EmbeddedNode, Genesis};

const CHAIN_ID: u64 = 31_337;
const TRADES: u64 = 20_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let folder = std::env::temp_dir().join(format!("foretell-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("chain.sqlite");
    println!("probe: one 4 KiB write and fdatasync {:.0} us", probe(&folder.join("probe")));

    let keys: Vec<PrivateKeySigner> =
        (1..=32).map(|n| PrivateKeySigner::from_bytes(&B256::repeat_byte(n)).unwrap()).collect();
    let clock = Arc::new(SystemClock::default());
    let genesis = Genesis {
        chain_id: CHAIN_ID,
        balances: keys.iter().map(|key| (key.address(), U256::MAX >> 8)).collect(),
        timestamp: Timestamp::from_s(1_777_464_000),
        gas_limit: 60_000_000,
        base_fee: 1,
    };

    let memory = EmbeddedNode::in_memory(genesis.clone(), clock.clone()).unwrap();
    run("in memory, one at a time", &memory, &keys[..1]).await;
    run("in memory, 31 senders", &memory, &keys[1..]).await;
    calls(&memory).await;
    drop(memory);

    let file = EmbeddedNode::open(&path, genesis.clone(), clock.clone()).unwrap();
    run("durable, one at a time", &file, &keys[..1]).await;
    run("durable, 31 senders", &file, &keys[1..]).await;
    calls(&file).await;
    let (head, _) = file.head();
    drop(file);
    let size = std::fs::metadata(&path).unwrap().len();
    let start = Instant::now();
    let file = EmbeddedNode::open(&path, genesis, clock).unwrap();
    println!("open with {head} blocks, {} MB: {:.0} ms", size >> 20, start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    let filter = alloy::rpc::types::Filter::new().from_block(0).address(Address::repeat_byte(1));
    let logs = file.provider().get_logs(&filter).await.unwrap();
    println!(
        "logs of nobody in {head} blocks: {} in {:.0} ms",
        logs.len(),
        start.elapsed().as_secs_f64() * 1e3
    );
    drop(file);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn probe(path: &std::path::Path) -> f64 {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    let start = Instant::now();
    for _ in 0..100 {
        file.write_all(&[1; 4096]).unwrap();
        file.sync_data().unwrap();
    }
    start.elapsed().as_secs_f64() * 1e4
}

/// Writes five fixed slots and three that depend on the first word of the input, and logs three times.
fn runtime() -> Vec<u8> {
    let mut code = Vec::new();
    for slot in 1..=5_u8 {
        // slot += 1
        code.extend([0x60, slot, 0x54, 0x60, 1, 0x01, 0x60, slot, 0x55]);
    }
    for salt in 0..3_u8 {
        // mem[0] = input[0], mem[32] = salt; slot keccak(mem[0..64]) = timestamp
        code.extend([
            0x5f, 0x35, 0x5f, 0x52, 0x60, salt, 0x60, 0x20, 0x52, 0x42, 0x60, 0x40, 0x5f, 0x20, 0x55,
        ]);
        // log3(mem[0..64], salt, input, 7)
        code.extend([0x60, 7, 0x5f, 0x35, 0x60, salt, 0x60, 0x40, 0x5f, 0xa3]);
    }
    code.push(0x00);
    code
}

fn sign(key: &PrivateKeySigner, nonce: u64, to: TxKind, input: Bytes) -> Bytes {
    let transaction = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 500_000,
        max_fee_per_gas: 2,
        max_priority_fee_per_gas: 0,
        to,
        value: U256::ZERO,
        input,
        access_list: Default::default(),
    };
    let signature = key.sign_hash_sync(&transaction.signature_hash()).unwrap();
    TxEnvelope::from(transaction.into_signed(signature)).encoded_2718().into()
}

async fn run(what: &str, node: &Arc<EmbeddedNode>, keys: &[PrivateKeySigner]) {
    let provider = node.provider();
    let code = runtime();
    let init = [
        &[
            0x60,
            u8::try_from(code.len()).unwrap(),
            0x60,
            0x0b,
            0x5f,
            0x39,
            0x60,
            code.len() as u8,
            0x5f,
            0xf3,
            0x00,
        ],
        code.as_slice(),
    ]
    .concat();
    let raw = sign(&keys[0], 0, TxKind::Create, init.into());
    let sent = provider.send_raw_transaction(&raw).await.unwrap();
    sent.get_receipt().await.unwrap();
    let contract = keys[0].address().create(0);
    let each = TRADES / keys.len() as u64;
    let raws: Vec<Vec<Bytes>> = keys
        .iter()
        .enumerate()
        .map(|(index, key)| {
            let first = u64::from(index == 0);
            // Each distinct input represents one account: a tenth as many accounts as trades.
            let input = |nonce: u64| {
                Bytes::from(B256::from(U256::from(nonce % (each / 10) * 1_000 + index as u64)).0)
            };
            (first..first + each).map(|nonce| sign(key, nonce, contract.into(), input(nonce))).collect()
        })
        .collect();
    let (start, cpu) = (Instant::now(), cpu_us());
    let tasks: Vec<_> = raws
        .into_iter()
        .map(|raws| {
            let provider = provider.clone();
            tokio::spawn(async move {
                for raw in raws {
                    let hash = *provider.send_raw_transaction(&raw).await.unwrap().tx_hash();
                    assert!(provider.get_transaction_receipt(hash).await.unwrap().unwrap().status());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let trades = each * keys.len() as u64;
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_us() - cpu);
    println!(
        "{what}: {:.0} transactions with receipts/s, {:.1} us CPU each",
        trades as f64 / wall,
        cpu / trades as f64
    );
}

async fn calls(node: &Arc<EmbeddedNode>) {
    let provider = node.provider();
    // Calls the identity precompile because the CREATE2 deployer reverts on an empty input.
    let request = TransactionRequest::default().with_to(Address::with_last_byte(4)).with_input(vec![1; 32]);
    for (what, id) in [("newest", alloy::eips::BlockId::latest()), ("block 5", 5.into())] {
        let start = Instant::now();
        for _ in 0..20_000 {
            provider.call(request.clone()).block(id).await.unwrap();
        }
        println!("eth_call at the {what}: {:.1} us", start.elapsed().as_secs_f64() * 1e6 / 20_000.0);
    }
}

/// User and system time of this process, in microseconds.
// Reads `/proc`, so this example runs only on Linux.
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> =
        stat.rsplit(')').next().expect("a command in brackets").split_whitespace().collect();
    // Fields 14 and 15 of proc(5), in ticks of 10 ms.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) * 10_000.0
}
