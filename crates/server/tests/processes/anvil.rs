//! A node of its own for a test.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The first account that anvil gives money to.
pub const FUNDER_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// A running anvil.
pub struct Anvil {
    _process: Child,
    /// Its JSON-RPC.
    pub url: String,
}

impl Anvil {
    /// Starts one; `None` where the tests have no anvil.
    pub async fn start() -> Option<Self> {
        let path = std::env::var("FORETELL_ANVIL").ok().filter(|path| !path.is_empty())?;
        let mut command = Command::new(path);
        command.args(["--port", "0"]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next_line().await.unwrap().expect("anvil says where it listens");
            if let Some(address) = line.strip_prefix("Listening on ") {
                let url = format!("http://{address}");
                // What it says later must not fill the pipe.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Some(Self { _process: process, url });
            }
        }
    }
}
