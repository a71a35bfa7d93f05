//! Mining: each transaction gets its own block immediately.
//!
//! A caller decodes a transaction, recovers the signer, queues a [`Job`] and waits. The miner takes
//! all queued jobs as one group and executes each on an overlay, in order. It commits the whole
//! group to the database, makes the blocks visible to readers, and then replies. No reader
//! therefore sees a block that a crash could undo, and concurrent senders share one disk sync. If
//! the commit fails, nothing has changed and every sender of the group gets the error.
//!
//! With a file, the miner runs in its own thread so that no async task waits for the disk. In
//! memory, the caller's thread does the work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::Shared;
use crate::block::{self, SealedBlock, SignedTransaction};
use crate::error::{EmbeddedError, RpcError};
use crate::evm::{self, TransactionFault};
use crate::state::Overlay;
use crate::storage::StorageWriter;

/// The maximum number of blocks in one commit. A flood of transactions then does not delay the
/// first sender of a group.
const GROUP: usize = 128;

/// A durable block, or the reason why the job was rejected.
pub(super) type MineResult = Result<Arc<SealedBlock>, RpcError>;

/// Called exactly once with the outcome.
pub(super) type MineReply = Box<dyn FnOnce(MineResult) + Send>;

/// The content of one block.
pub(super) enum Job {
    Transaction(Box<SignedTransaction>, MineReply),
    /// A block without a transaction, which advances the chain's time.
    Empty(MineReply),
}

/// The queue of jobs, with or without a thread.
pub(super) enum Mine {
    Here(Mutex<Miner>),
    Thread { queue: Option<Sender<Job>>, thread: Option<JoinHandle<()>> },
}

impl Mine {
    pub fn spawn(miner: Miner) -> Result<Self, EmbeddedError> {
        let (queue, jobs) = mpsc::channel();
        let thread =
            std::thread::Builder::new().name("chain-miner".to_owned()).spawn(move || miner.run(&jobs))?;
        Ok(Self::Thread { queue: Some(queue), thread: Some(thread) })
    }

    /// Queues a job. Without a thread, the reply is called before this returns.
    pub fn submit(&self, job: Job) {
        match self {
            Self::Here(miner) => miner.lock().group(VecDeque::from([job])),
            Self::Thread { queue, .. } => {
                let refused = match queue {
                    Some(queue) => queue.send(job).err().map(|mpsc::SendError(job)| job),
                    None => Some(job),
                };
                if let Some(Job::Transaction(_, reply) | Job::Empty(reply)) = refused {
                    reply(Err(RpcError::internal("the embedded chain has stopped")));
                }
            }
        }
    }
}

impl Drop for Mine {
    /// Waits until the queued jobs are mined and the database is closed, so that the file can be
    /// reopened immediately.
    fn drop(&mut self) {
        if let Self::Thread { queue, thread } = self {
            // Closing the queue ends the thread's loop once the queue is empty.
            drop(queue.take());
            if let Some(thread) = thread.take()
                && thread.join().is_err()
            {
                tracing::error!("the embedded chain's miner had panicked");
            }
        }
    }
}

/// Creates all blocks of the chain.
pub(super) struct Miner {
    shared: Arc<Shared>,
    writer: StorageWriter,
}

impl Miner {
    pub fn new(shared: Arc<Shared>, writer: StorageWriter) -> Self {
        Self { shared, writer }
    }

    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut group = VecDeque::from([first]);
            group.extend(jobs.try_iter().take(GROUP - 1));
            self.group(group);
        }
    }

    fn group(&mut self, jobs: VecDeque<Job>) {
        let (replies, staged) = {
            // Only the read lock, so that calls continue while the group executes.
            let chain = self.shared.chain.read();
            let mut overlay = Overlay::new(&chain);
            let execute = |job| match job {
                Job::Transaction(transaction, reply) => (reply, self.transaction(&mut overlay, *transaction)),
                Job::Empty(reply) => (reply, Ok(self.empty(&mut overlay))),
            };
            let replies: Vec<(MineReply, MineResult)> = jobs.into_iter().map(execute).collect();
            (replies, overlay.into_staged())
        };
        // A group of rejected transactions has nothing to commit: skip the disk sync.
        let committed = match staged.is_empty() {
            true => Ok(()),
            false => self.writer.commit(&staged),
        };
        match committed {
            Ok(()) => {
                // Readers see the blocks only after the commit, so that a crash cannot undo a
                // visible block.
                self.shared.chain.write().apply(staged);
                replies.into_iter().for_each(|(reply, outcome)| reply(outcome));
            }
            Err(error) => {
                let error = RpcError::from(error);
                replies.into_iter().for_each(|(reply, _)| reply(Err(error.clone())));
            }
        }
    }

    fn transaction(&self, overlay: &mut Overlay<'_>, transaction: SignedTransaction) -> MineResult {
        let parent = Arc::clone(overlay.head());
        let context = block::next_context(self.shared.chain_id, &parent, self.shared.clock.now().s());
        let (execution, changes) =
            evm::transact(&context, &transaction.envelope, transaction.sender, overlay).or_else(|fault| {
                Err(match fault {
                    TransactionFault::Refused(why) => RpcError::refused(why),
                    TransactionFault::Failed(error) => error.into(),
                    TransactionFault::NonceTooLow { state, transaction: nonce } => {
                        // A resent transaction must be recognized as known, not rejected for its
                        // nonce.
                        match self.is_mined(overlay, transaction.envelope.tx_hash())? {
                            true => RpcError::refused("already known"),
                            false => RpcError::refused(format!(
                                "nonce too low: next nonce {state}, tx nonce {nonce}"
                            )),
                        }
                    }
                })
            })?;
        let block = Arc::new(block::seal(&context, &parent, transaction, execution, &changes));
        overlay.stage(Arc::clone(&block), changes);
        Ok(block)
    }

    fn empty(&self, overlay: &mut Overlay<'_>) -> Arc<SealedBlock> {
        let parent = Arc::clone(overlay.head());
        let context = block::next_context(self.shared.chain_id, &parent, self.shared.clock.now().s());
        let block = Arc::new(block::seal_empty(&context, &parent));
        overlay.stage(Arc::clone(&block), Vec::new());
        block
    }

    fn is_mined(&self, overlay: &Overlay<'_>, hash: &alloy_primitives::B256) -> Result<bool, EmbeddedError> {
        Ok(overlay.holds(hash) || self.shared.archive.transaction(hash)?.is_some())
    }
}
