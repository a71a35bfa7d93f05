//! Runs a recovery from a command, with or without a running service.
//!
//! A recovery waits until the blocks up to its last one are settled, and only the sync settles them.
//! After a restore there is often no service yet, so the driver reads the blocks itself. It takes the
//! lease of the sync for that, and leaves the work to a service that has it.

use std::fmt;

use alloy_primitives::Address;
use store::{StoreError, Tx};

use super::run::{Advance, advance};
use crate::ledger::Sync;
use crate::worker::Progress;
use crate::{AppError, Ctx};

/// Who reads the blocks that the recovery waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockReader {
    /// The driver, because no other process does.
    Driver,
    /// A process that holds the lease of the sync.
    Service,
    /// Only a service can read this chain, and none does.
    Nobody,
}

/// Why a recovery waits, and how far the blocks are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryWait {
    pub why: String,
    /// The last block that was read, and the last one that is settled.
    pub read: Option<u64>,
    pub settled: Option<u64>,
    /// The chain's newest block.
    pub head: u64,
    pub reader: BlockReader,
}

impl fmt::Display for RecoveryWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = |block: Option<u64>| block.map_or_else(|| "none".to_owned(), |block| block.to_string());
        let reader = match self.reader {
            BlockReader::Driver => "this command reads them",
            BlockReader::Service => "a running process reads them",
            BlockReader::Nobody => "no process reads them",
        };
        let Self { why, head, .. } = self;
        write!(
            f,
            "{why}. Blocks read: up to {}, settled: up to {}, newest on chain: {head}; {reader}",
            block(self.read),
            block(self.settled)
        )
    }
}

/// The state after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryStep {
    Waiting(RecoveryWait),
    /// This or another process has ended the recovery.
    Ended,
}

/// Advances the open recovery step by step.
pub struct RecoveryDriver {
    /// `None` if only the service can read the chain.
    sync: Option<Sync>,
    executors: Vec<Address>,
}

impl RecoveryDriver {
    /// Creates a driver. `executors` are those that the caller knows, in addition to the lanes'. With
    /// `sync`, it reads blocks while no other process does.
    pub const fn new(sync: Option<Sync>, executors: Vec<Address>) -> Self {
        Self { sync, executors }
    }

    /// Reads blocks if it must, and goes as far as possible now.
    pub async fn step(&self, ctx: &Ctx) -> Result<RecoveryStep, AppError> {
        match advance(ctx, &self.executors).await? {
            Advance::Done(_) | Advance::Idle => Ok(RecoveryStep::Ended),
            Advance::Waiting(why) => {
                let reader = self.read_blocks(ctx).await?;
                let head = ctx.chain.head().await?.number;
                let (read, settled) = ctx.store.read((), |tx, ()| Box::pin(places(tx))).await?;
                Ok(RecoveryStep::Waiting(RecoveryWait { why, read, settled, head, reader }))
            }
        }
    }

    /// Reads the blocks that there are now, unless another process does.
    async fn read_blocks(&self, ctx: &Ctx) -> Result<BlockReader, AppError> {
        let Some(sync) = &self.sync else {
            let leases = ctx.store.read((), |tx, ()| Box::pin(store::leases::list(tx))).await?;
            let now = ctx.now();
            let is_held =
                leases.iter().any(|(name, until)| name == crate::ledger::SYNC_LEASE && *until > now);
            return Ok(if is_held { BlockReader::Service } else { BlockReader::Nobody });
        };
        loop {
            match sync.step(ctx).await? {
                None => return Ok(BlockReader::Service),
                Some(Progress::Idle) => return Ok(BlockReader::Driver),
                Some(Progress::More) => {}
            }
        }
    }

    /// Leaves the blocks to the service.
    pub async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        match &self.sync {
            Some(sync) => crate::worker::Worker::release(sync, ctx).await,
            None => Ok(()),
        }
    }
}

async fn places(tx: &mut Tx) -> Result<(Option<u64>, Option<u64>), StoreError> {
    let read = store::sync::find_last(tx, None).await?.map(|block| block.number);
    Ok((read, store::sync::find_settled(tx).await?))
}
