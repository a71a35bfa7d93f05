//! A node of anvil's, for what the embedded chain does not do.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use alloy::providers::{DynProvider, Provider as _};
use chain::http_provider;

use crate::setup::{CHAIN_ID, START};

/// A running anvil, ended when it is dropped.
pub struct Anvil {
    child: Child,
    /// The way to it.
    pub provider: DynProvider,
}

impl Anvil {
    /// Starts the binary that `FORETELL_ANVIL` names; `None` where it names none.
    ///
    /// # Panics
    /// Where it does not start.
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
        // Anvil stops answering once nobody reads what it prints.
        std::thread::spawn(move || lines.for_each(drop));
        let provider = http_provider(&format!("http://{}", listening.unwrap())).unwrap();
        Some(Self { child, provider })
    }

    /// Whether each transaction gets a block of its own at once. Otherwise transactions wait in the pool until a block is mined.
    ///
    /// # Panics
    /// Where anvil refuses.
    pub async fn mine_by_itself(&self, automatic: bool) {
        let _: Option<bool> =
            self.provider.raw_request("evm_setAutomine".into(), (automatic,)).await.unwrap();
    }

    /// Puts empty blocks in the place of the newest ones; what was in them is gone.
    ///
    /// # Panics
    /// Where anvil refuses.
    pub async fn reorganise(&self, depth: u64) {
        let nothing_instead: [u64; 0] = [];
        let done = self.provider.raw_request("anvil_reorg".into(), (depth, nothing_instead));
        let _: Option<bool> = done.await.unwrap();
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
