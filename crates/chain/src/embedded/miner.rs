//! Mining: one transaction, one block, at once.
//!
//! Life of a send: the caller decodes and recovers the signer, queues a [`Job`] and waits. The miner takes everything
//! that is queued as one group; executes each on an overlay, in order, each its own block; commits the whole group to
//! the database; shows the blocks to the readers; answers. So nobody ever sees a block that a crash could undo, and
//! senders that come together share one wait for the disk. Where the commit fails, nothing has happened and every
//! sender of the group is told so.
//!
//! With a file the miner is a thread, so that no asynchronous task waits for a disk. Without one there is nothing to
//! wait for, and the caller's own thread does the work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::Shared;
use super::block::{self, SealedBlock, SignedTransaction};
use super::error::{EmbeddedError, RpcError};
use super::evm::{self, Fault};
use super::state::Overlay;
use super::storage::Writer;

/// Blocks that share one commit at most, so that a flood does not hold back the first of its senders.
const GROUP: usize = 128;

/// How a block came out: durable, or refused.
pub(super) type Outcome = Result<Arc<SealedBlock>, RpcError>;

/// Called once with the outcome.
pub(super) type Reply = Box<dyn FnOnce(Outcome) + Send>;

/// What goes into one block.
pub(super) enum Job {
    Transaction(Box<SignedTransaction>, Reply),
    /// A block without a transaction, so that the chain's time moves.
    Empty(Reply),
}

/// Where jobs go.
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

    /// Queues a job. Its reply comes later, or before this returns.
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
    /// Waits until what is queued is mined and the database is closed, so that the file can be opened again at once.
    fn drop(&mut self) {
        if let Self::Thread { queue, thread } = self {
            drop(queue.take());
            if let Some(thread) = thread.take()
                && thread.join().is_err()
            {
                tracing::error!("the embedded chain's miner had panicked");
            }
        }
    }
}

/// The only one who makes blocks.
pub(super) struct Miner {
    shared: Arc<Shared>,
    writer: Writer,
}

impl Miner {
    pub fn new(shared: Arc<Shared>, writer: Writer) -> Self {
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
            let chain = self.shared.chain.read();
            let mut overlay = Overlay::new(&chain);
            let execute = |job| match job {
                Job::Transaction(transaction, reply) => (reply, self.transaction(&mut overlay, *transaction)),
                Job::Empty(reply) => (reply, Ok(self.empty(&mut overlay))),
            };
            let replies: Vec<(Reply, Outcome)> = jobs.into_iter().map(execute).collect();
            (replies, overlay.into_staged())
        };
        let committed = match staged.is_empty() {
            true => Ok(()),
            false => self.writer.commit(&staged),
        };
        match committed {
            Ok(()) => {
                self.shared.chain.write().apply(staged);
                replies.into_iter().for_each(|(reply, outcome)| reply(outcome));
            }
            Err(error) => {
                let error = RpcError::from(error);
                replies.into_iter().for_each(|(reply, _)| reply(Err(error.clone())));
            }
        }
    }

    fn transaction(&self, overlay: &mut Overlay<'_>, transaction: SignedTransaction) -> Outcome {
        let parent = Arc::clone(overlay.head());
        let context = block::next_context(self.shared.chain_id, &parent, self.shared.clock.now().s());
        let (execution, changes) =
            evm::transact(&context, &transaction.envelope, transaction.sender, overlay).or_else(|fault| {
                Err(match fault {
                    Fault::Refused(why) => RpcError::refused(why),
                    Fault::Failed(error) => error.into(),
                    Fault::NonceTooLow { state, transaction: nonce } => {
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
