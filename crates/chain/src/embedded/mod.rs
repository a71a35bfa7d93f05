//! The embedded chain: an Ethereum chain of one node, in this process, on revm and SQLite.
//!
//! It speaks the JSON-RPC that contracts' clients, wallets and tools use, so that everything above it is the same code
//! as over a real node. Every accepted transaction is mined at once into a block of its own. A block is final the moment it
//! exists: the tags latest, pending, safe and finalized all mean the newest one.
//!
//! | File | Holds |
//! |---|---|
//! | `miner` | the order of execution, commit, visibility and answer |
//! | `evm` | revm, and nothing else does |
//! | `state` | the present, in memory, behind one lock |
//! | `storage` | SQLite: durability, the past |
//! | `block`, `genesis` | headers, roots, block 0 |
//! | `rpc` | the methods |
//! | `transport` | the same methods as an alloy transport |
//!
//! What it does not keep: a state trie (so no `eth_getProof`, and a substitute for the state root), a pool of waiting
//! transactions (a nonce from the future is refused), blobs.

mod block;
mod error;
mod evm;
mod genesis;
mod miner;
mod rpc;
mod state;
mod storage;
mod transport;

/// The file of a chain: copies of it, and what it holds.
pub mod file {
    pub use super::storage::{ChainFile, block_hash, copy_file, read_file};
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

use miner::{Job, Mine, Miner, Outcome};
use state::Chain;
use storage::{Archive, Place};

/// How often a provider asks for a receipt that is not there yet. Rarely needed: a send is answered when it is mined.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// What the miner and the readers share.
struct Shared {
    chain_id: u64,
    chain: RwLock<Chain>,
    archive: Archive,
    clock: Arc<dyn Clock>,
}

/// A chain in this process. Dropping the last handle waits for what is queued and closes the file.
pub struct EmbeddedNode {
    shared: Arc<Shared>,
    mine: Mine,
}

impl EmbeddedNode {
    /// Opens the chain in the SQLite file at `path`, made from `genesis` where there is none yet. An existing chain keeps
    /// its own genesis; only the chain id must agree.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened or written, belongs to another chain id, has another layout or does not read.
    pub fn open(path: &Path, genesis: Genesis, clock: Arc<dyn Clock>) -> Result<Arc<Self>, EmbeddedError> {
        Self::start(Place::File(path), &genesis, clock)
    }

    /// A chain that is gone with its last handle: the same code on a database in memory.
    ///
    /// # Errors
    ///
    /// Only where SQLite itself fails.
    pub fn in_memory(genesis: Genesis, clock: Arc<dyn Clock>) -> Result<Arc<Self>, EmbeddedError> {
        Self::start(Place::Memory, &genesis, clock)
    }

    fn start(place: Place<'_>, genesis: &Genesis, clock: Arc<dyn Clock>) -> Result<Arc<Self>, EmbeddedError> {
        let (writer, archive, chain) = storage::open(place, genesis)?;
        let shared =
            Arc::new(Shared { chain_id: genesis.chain_id, chain: RwLock::new(chain), archive, clock });
        let miner = Miner::new(Arc::clone(&shared), writer);
        let mine = match place {
            Place::File(_) => Mine::spawn(miner)?,
            Place::Memory => Mine::Here(Mutex::new(miner)),
        };
        Ok(Arc::new(Self { shared, mine }))
    }

    /// The chain id of every transaction.
    pub fn chain_id(&self) -> u64 {
        self.shared.chain_id
    }

    /// Number and hash of the newest block.
    pub fn head(&self) -> (u64, B256) {
        let chain = self.shared.chain.read();
        (chain.head().header.number, chain.head().hash)
    }

    /// The newest block's header, with its hash.
    pub fn newest(&self) -> Sealed<Header> {
        let chain = self.shared.chain.read();
        Sealed::new_unchecked(chain.head().header.clone(), chain.head().hash)
    }

    /// Mines a block without a transaction, so that the chain's time moves to the clock's. Gives its number.
    ///
    /// # Errors
    ///
    /// Where the database cannot be written.
    pub fn mine(&self) -> Result<u64, RpcError> {
        Ok(self.wait(Job::Empty)?.header.number)
    }

    /// A provider over this chain, without fillers: callers bring their own nonces and fees.
    pub fn provider(self: &Arc<Self>) -> DynProvider {
        let client = RpcClient::new(InProcess::new(Arc::clone(self)), true).with_poll_interval(POLL_INTERVAL);
        ProviderBuilder::new().disable_recommended_fillers().connect_client(client).erased()
    }

    /// Queues a job and blocks until it is mined or refused.
    fn wait(&self, job: impl FnOnce(miner::Reply) -> Job) -> Outcome {
        let (sender, outcome) = std::sync::mpsc::sync_channel(1);
        // The receiver below outlives the reply, so there is always somebody to take it.
        self.mine.submit(job(Box::new(move |outcome| drop(sender.send(outcome)))));
        outcome.recv().unwrap_or_else(|_| Err(RpcError::internal("the embedded chain has stopped")))
    }

    /// Queues a job; the future ends when it is mined or refused. Dropping the future does not take the job back.
    async fn submit(&self, job: impl FnOnce(miner::Reply) -> Job) -> Outcome {
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
