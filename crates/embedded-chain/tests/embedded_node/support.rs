//! The fixture of the tests: a chain with one funded account and one contract, and helpers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use alloy::consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy::eips::eip2718::Encodable2718 as _;
use alloy::signers::SignerSync as _;
use alloy::signers::local::PrivateKeySigner;
use alloy_primitives::{Address, B256, Bytes, TxKind, U64, U256, hex};
use domain::time::ManualClock;
use domain::{Clock, Timestamp};
use embedded_chain::{EmbeddedNode, Genesis, RpcError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub const CHAIN_ID: u64 = 31_337;
pub const GWEI: u128 = 1_000_000_000;
/// The time of the first block of every test's chain, in Unix seconds.
pub const START_S: u64 = 1_777_464_000;

/// The topic of the contract's event.
pub const COUNTED: B256 = B256::repeat_byte(0xC0);

/// Runtime code that branches on the size of its input:
///
/// - 0 bytes: increment slot 0 and log the new count under [`COUNTED`]
/// - 1 byte: return slot 0
/// - 2 bytes: revert with `Error("no")`
/// - 3 bytes: return the block's time
/// - 4 bytes: run an invalid instruction
/// - 32 bytes: revert with the input itself
pub const CONTRACT: [u8; 211] = hex!(
    "36600114605757366002146063573660031460bb573660041460c5573660201460c75760005460010180600055600052"
    "7fc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c060206000a1005b6000546000526020"
    "6000f35b7f08c379a0000000000000000000000000000000000000000000000000000000006000526020600452600260"
    "24527f6e6f00000000000000000000000000000000000000000000000000000000000060445260646000fd5b42600052"
    "60206000f35bfe5b60003560005260206000fd"
);

pub struct World {
    pub node: Arc<EmbeddedNode>,
    pub clock: Arc<ManualClock>,
    pub key: PrivateKeySigner,
}

impl World {
    pub fn in_memory() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_s(START_S)));
        let node = EmbeddedNode::in_memory(genesis(), Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        Self { node, clock, key: key() }
    }

    pub fn open(path: &Path) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_s(START_S)));
        let node = EmbeddedNode::open(path, genesis(), Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        Self { node, clock, key: key() }
    }

    /// Calls a method and decodes its result.
    pub fn ask<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, RpcError> {
        let params = serde_json::value::to_raw_value(&params).unwrap();
        let answer = self.node.handle(method, Some(&params))?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    /// Signs a transaction of the funded account.
    pub fn sign(&self, nonce: u64, to: TxKind, input: impl Into<Bytes>) -> Bytes {
        sign(&self.key, TxEip1559 { to, input: input.into(), ..transaction(nonce) })
    }

    pub fn send(&self, raw: &Bytes) -> Result<B256, RpcError> {
        self.ask("eth_sendRawTransaction", json!([raw]))
    }

    /// Deploys the contract with the funded account's nonce 0.
    pub fn deploy(&self) -> Address {
        self.send(&self.sign(0, TxKind::Create, deployment(&CONTRACT))).unwrap();
        self.key.address().create(0)
    }

    /// Increments the counter of the contract at `to`.
    pub fn count(&self, nonce: u64, to: Address) -> B256 {
        self.send(&self.sign(nonce, TxKind::Call(to), Bytes::new())).unwrap()
    }

    /// Increments the counter once with each of these nonces.
    pub fn count_each(&self, nonces: std::ops::Range<u64>, to: Address) -> Vec<B256> {
        nonces.map(|nonce| self.count(nonce, to)).collect()
    }

    /// Runs `eth_call` with an input of `size` zero bytes at a block.
    pub fn call(&self, to: Address, size: usize, block: Value) -> Result<U256, RpcError> {
        self.ask("eth_call", json!([{ "to": to, "input": Bytes::from(vec![0; size]) }, block]))
    }

    pub fn head(&self) -> u64 {
        self.ask::<U64>("eth_blockNumber", json!([])).unwrap().to()
    }
}

pub fn genesis() -> Genesis {
    Genesis {
        chain_id: CHAIN_ID,
        balances: vec![(key().address(), U256::from(1_000_000_000 * GWEI))],
        timestamp: Timestamp::from_s(START_S),
        gas_limit: 60_000_000,
        base_fee: GWEI as u64,
    }
}

pub fn key() -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(7)).unwrap()
}

/// Returns a transaction without a recipient and input, for the test to complete.
pub fn transaction(nonce: u64) -> TxEip1559 {
    TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 500_000,
        max_fee_per_gas: 2 * GWEI,
        max_priority_fee_per_gas: 0,
        to: TxKind::Call(Address::repeat_byte(0xEE)),
        ..TxEip1559::default()
    }
}

pub fn sign(key: &PrivateKeySigner, transaction: TxEip1559) -> Bytes {
    let signature = key.sign_hash_sync(&transaction.signature_hash()).unwrap();
    TxEnvelope::from(transaction.into_signed(signature)).encoded_2718().into()
}

/// Returns creation code that deploys `runtime`.
pub fn deployment(runtime: &[u8]) -> Bytes {
    let size = u8::try_from(runtime.len()).unwrap().to_be_bytes();
    let prefix = [0x60, size[0], 0x60, 0x0b, 0x5f, 0x39, 0x60, size[0], 0x5f, 0xf3, 0x00];
    [&prefix, runtime].concat().into()
}

/// A temporary folder, deleted when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("foretell-embedded-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn chain(&self) -> PathBuf {
        self.0.join("chain.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
