//! An anvil node, for tests of features that the embedded chain lacks.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use alloy::providers::{DynProvider, Provider as _};
use chain::http_provider;

use crate::genesis::{CHAIN_ID, START};

/// A running anvil process, killed when dropped.
pub struct Anvil {
    child: Child,
    pub provider: DynProvider,
}

impl Anvil {
    /// Starts the binary named by `FORETELL_ANVIL`. Returns `None` if the variable is not set.
    ///
    /// # Panics
    /// If the binary does not start.
    pub fn start() -> Option<Self> {
        let Some(path) = std::env::var_os("FORETELL_ANVIL") else {
            eprintln!("FORETELL_ANVIL is not set: not run on anvil");
            return None;
        };
        let mut child = Command::new(path)
            .args(["--port", "0", "--hardfork", "osaka", "--gas-limit", "60000000"])
            .args(["--chain-id", &CHAIN_ID.to_string(), "--timestamp", &START.s().to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("FORETELL_ANVIL names anvil's binary");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listening = lines.find_map(|line| line.unwrap().strip_prefix("Listening on ").map(str::to_owned));
        // Anvil blocks once its output pipe is full, so keep reading it.
        std::thread::spawn(move || lines.for_each(drop));
        let provider = http_provider(&format!("http://{}", listening.unwrap())).unwrap();
        Some(Self { child, provider })
    }

    /// Sets whether each transaction immediately gets its own block. Otherwise transactions wait in
    /// the pool until a block is mined.
    pub async fn mine_by_itself(&self, automatic: bool) {
        let _: Option<bool> =
            self.provider.raw_request("evm_setAutomine".into(), (automatic,)).await.unwrap();
    }

    /// Replaces the `depth` newest blocks by empty ones. Their transactions are lost.
    pub async fn reorganise(&self, depth: u64) {
        let nothing_instead: [u64; 0] = [];
        let done = self.provider.raw_request("anvil_reorg".into(), (depth, nothing_instead));
        let _: Option<bool> = done.await.unwrap();
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        // The process may already have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
