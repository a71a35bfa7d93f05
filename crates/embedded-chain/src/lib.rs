//! The embedded chain: a single-node Ethereum chain in this process, based on revm and SQLite.
//!
//! It offers standard JSON-RPC methods, so that clients of the contracts, wallets and tools use it
//! like any other node. Each accepted transaction is immediately mined into its own block. A block
//! is final as soon as it exists: the tags latest, pending, safe and finalized all mean the newest
//! block.
//!
//! | Module | Responsibility |
//! |---|---|
//! | `miner` | order of execution, commit, visibility and replies |
//! | `evm` | execution, the only user of revm's machine |
//! | `account` | accounts, their code and their changes |
//! | `state` | the current state, in memory, behind one lock |
//! | `storage` | SQLite: durability and history |
//! | `block`, `genesis` | headers, roots, block 0 |
//! | `rpc` | the JSON-RPC methods |
//! | `transport` | the same methods as an alloy transport
//!
//! Not supported: a state trie (so no `eth_getProof`, and a substitute for the state root), a
//! transaction pool (a nonce above the next one is rejected), and blobs.

mod account;
mod block;
mod error;
mod evm;
mod genesis;
mod miner;
mod rpc;
mod state;
mod storage;
mod transport;

/// Access to the file of a chain: copying it and reading its newest block.
pub mod file {
    pub use crate::storage::{ChainFile, block_hash, check_pages, copy_file, read_file};
}

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use alloy::consensus::{Header, Sealed};
use alloy::providers::{DynProvider, Provider as _, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy_primitives::B256;
use domain::Clock;
use parking_lot::{Mutex, RwLock};

pub use error::{EmbeddedError, RpcError};
pub use genesis::{CREATE2_DEPLOYER, Genesis};
pub use rpc::Access;
pub use transport::InProcess;

use miner::{Job, Mine, MineResult, Miner};
use state::ChainState;
use storage::{Archive, StorageLocation, WriteProbe};

/// The interval at which a provider polls for a missing receipt. Rarely used, because a send
/// returns after the transaction is mined.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// The state that the miner and the readers share.
struct Shared {
    chain_id: u64,
    chain: RwLock<ChainState>,
    archive: Archive,
    probe: WriteProbe,
    clock: Arc<dyn Clock>,
}

/// A chain in this process. Dropping the last handle waits for queued jobs and closes the file.
pub struct EmbeddedNode {
    shared: Arc<Shared>,
    mine: Mine,
}

impl EmbeddedNode {
    /// Opens the chain in the SQLite file at `path`, and creates it from `genesis` if the file is
    /// new. An existing chain keeps its own genesis; only the chain id must match.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or written, has another chain id or layout, or is corrupt.
    pub fn open(path: &Path, genesis: Genesis, clock: Arc<dyn Clock>) -> Result<Arc<Self>, EmbeddedError> {
        Self::start(StorageLocation::File(path), &genesis, clock)
    }

    /// Creates a chain in memory, which is lost with its last handle. Uses the same code as a file.
    ///
    /// # Errors
    ///
    /// Only if SQLite itself fails.
    pub fn in_memory(genesis: Genesis, clock: Arc<dyn Clock>) -> Result<Arc<Self>, EmbeddedError> {
        Self::start(StorageLocation::Memory, &genesis, clock)
    }

    fn start(
        place: StorageLocation<'_>,
        genesis: &Genesis,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, EmbeddedError> {
        let (writer, archive, chain) = storage::open(place, genesis)?;
        let (chain_id, chain, probe) = (genesis.chain_id, RwLock::new(chain), writer.probe());
        let shared = Arc::new(Shared { chain_id, chain, archive, probe, clock });
        let miner = Miner::new(Arc::clone(&shared), writer);
        let mine = match place {
            StorageLocation::File(_) => Mine::spawn(miner)?,
            // Without disk writes a thread has no benefit: jobs run on the caller's thread.
            StorageLocation::Memory => Mine::Here(Mutex::new(miner)),
        };
        Ok(Arc::new(Self { shared, mine }))
    }

    /// Copies this chain into memory. From then on, the two chains have nothing in common.
    ///
    /// # Errors
    ///
    /// If this chain's database cannot be read.
    pub fn fork(&self, clock: Arc<dyn Clock>) -> Result<Arc<Self>, EmbeddedError> {
        let (writer, archive, chain) = storage::fork(&self.shared.archive)?;
        let (chain_id, chain, probe) = (self.shared.chain_id, RwLock::new(chain), writer.probe());
        let shared = Arc::new(Shared { chain_id, chain, archive, probe, clock });
        let mine = Mine::Here(Mutex::new(Miner::new(Arc::clone(&shared), writer)));
        Ok(Arc::new(Self { shared, mine }))
    }

    pub fn chain_id(&self) -> u64 {
        self.shared.chain_id
    }

    /// Returns the path of the chain's file, unless it is in memory.
    pub fn path(&self) -> Option<&Path> {
        self.shared.archive.path()
    }

    /// Proves that the chain's database accepts writes. Blocks this thread for a disk sync.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn probe_write(&self) -> Result<(), EmbeddedError> {
        self.shared.probe.write()
    }

    /// Returns the number and hash of the newest block.
    pub fn head(&self) -> (u64, B256) {
        let chain = self.shared.chain.read();
        (chain.head().header.number, chain.head().hash)
    }

    /// Returns the newest block's header with its hash.
    pub fn newest(&self) -> Sealed<Header> {
        let chain = self.shared.chain.read();
        // The hash is the header's: `seal` computed it.
        Sealed::new_unchecked(chain.head().header.clone(), chain.head().hash)
    }

    /// Mines a block without a transaction, which advances the chain's time to the clock's. Returns
    /// its number.
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn mine(&self) -> Result<u64, RpcError> {
        Ok(self.wait(Job::Empty)?.header.number)
    }

    /// Returns a provider for this chain without fillers: callers choose their own nonces and fees.
    pub fn provider(self: &Arc<Self>) -> DynProvider {
        let client = RpcClient::new(InProcess::new(Arc::clone(self)), true).with_poll_interval(POLL_INTERVAL);
        ProviderBuilder::new().disable_recommended_fillers().connect_client(client).erased()
    }

    /// Queues a job and blocks this thread until it is mined or rejected.
    fn wait(&self, job: impl FnOnce(miner::MineReply) -> Job) -> MineResult {
        let (sender, outcome) = std::sync::mpsc::sync_channel(1);
        // The receiver outlives the reply, so sending cannot fail.
        self.mine.submit(job(Box::new(move |outcome| drop(sender.send(outcome)))));
        outcome.recv().unwrap_or_else(|_| Err(RpcError::internal("the embedded chain has stopped")))
    }

    /// Queues a job and waits until it is mined or rejected. Dropping the future does not cancel
    /// the job.
    async fn submit(&self, job: impl FnOnce(miner::MineReply) -> Job) -> MineResult {
        let (sender, outcome) = tokio::sync::oneshot::channel();
        self.mine.submit(job(Box::new(move |outcome| drop(sender.send(outcome)))));
        outcome.await.unwrap_or_else(|_| Err(RpcError::internal("the embedded chain has stopped")))
    }
}

impl fmt::Debug for EmbeddedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, hash) = self.head();
        f.debug_struct("EmbeddedNode")
            .field("chain_id", &self.shared.chain_id)
            .field("number", &number)
            .field("hash", &hash)
            .finish()
    }
}
