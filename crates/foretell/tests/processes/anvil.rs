//! An anvil node for a test.

use std::process::Stdio;

use alloy_primitives::{Address, Bytes};
use serde_json::{Value, json};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The private key of anvil's first funded account.
pub const FUNDER_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

pub struct Anvil {
    _process: Child,
    /// JSON-RPC URL.
    pub url: String,
}

impl Anvil {
    /// Starts anvil, or returns `None` if it is not available.
    pub async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// Starts anvil on a chain whose genesis block is from 2023. The genesis blocks of two chains that
    /// start in the same second are equal.
    pub async fn start_from_2023() -> Option<Self> {
        Self::start_with(&["--timestamp", "1700000000"]).await
    }

    async fn start_with(arguments: &[&str]) -> Option<Self> {
        let path = std::env::var("FORETELL_ANVIL").ok().filter(|path| !path.is_empty())?;
        let mut command = Command::new(path);
        command.args(["--port", "0"]).args(arguments).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next_line().await.unwrap().expect("anvil says where it listens");
            if let Some(address) = line.strip_prefix("Listening on ") {
                let url = format!("http://{address}");
                // Keep reading, or its later output would fill the pipe and block it.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Some(Self { _process: process, url });
            }
        }
    }

    /// Mines a block per second from now on, instead of one per transaction.
    pub async fn mine_every_second(&self) {
        self.call("evm_setAutomine", json!([false])).await;
        self.call("evm_setIntervalMining", json!([1])).await;
    }

    /// Replaces the newest blocks with empty ones and drops their transactions.
    pub async fn reorganize(&self, depth: u64) {
        self.call("anvil_reorg", json!([depth, []])).await;
    }

    /// Sends a transaction from one of anvil's own accounts, and ignores its result.
    pub async fn send_as(&self, from: &str, to: Address, data: &Bytes) {
        let call = json!({ "from": from, "to": to, "data": data, "gas": "0x7a120" });
        self.call("eth_sendTransaction", json!([call])).await;
    }

    pub async fn call(&self, method: &str, params: Value) -> Value {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        http.post(&self.url).json(&request).send().await.unwrap().json().await.unwrap()
    }
}
