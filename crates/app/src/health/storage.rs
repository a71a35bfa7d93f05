//! Whether the storage accepts writes. The files of an embedded database and an embedded chain belong to
//! this process, which is unready if they fail. A database server is shared, so its failure only
//! degrades every process.

use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use parking_lot::Mutex;
use store::{Engine, StoreError};

use super::file::WatchedFile;
use super::{Degradation, Reason, Storage};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// Time between two proofs that a write works. Each costs a commit.
const PROOF_EVERY_MS: i64 = 5_000;
/// The time that a write has. A longer one means that the writer hangs.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Proves writes and watches the files. It runs in every process without a lease.
pub struct StorageWatcher {
    files: Mutex<Vec<(Storage, WatchedFile)>>,
    proved_at: Mutex<Option<Timestamp>>,
}

impl StorageWatcher {
    pub fn new(ctx: &Ctx) -> Self {
        let database = ctx.store.sqlite_path().map(|path| (Storage::Database, WatchedFile::new(path)));
        let chain = ctx.chain.file().map(|path| (Storage::Chain, WatchedFile::new(path)));
        Self { files: Mutex::new(database.into_iter().chain(chain).collect()), proved_at: Mutex::default() }
    }

    /// Returns what is wrong with each file that can be seen without writing to it.
    fn look(&self, ctx: &Ctx) -> Vec<(Storage, Option<String>)> {
        let mut files = self.files.lock();
        let faults = files.iter_mut().map(|(storage, file)| {
            let damage = match storage {
                Storage::Database => ctx.store.damage().map(|damage| damage.to_string()),
                Storage::Chain => None,
            };
            (*storage, damage.or_else(|| file.find_fault().map(str::to_owned)))
        });
        faults.collect()
    }

    /// Returns whether a write must be proved now: regularly, and at every look after a failed one.
    fn is_due(&self, now: Timestamp) -> bool {
        self.proved_at.lock().is_none_or(|at| now.since_ms(at) >= PROOF_EVERY_MS)
    }
}

#[async_trait]
impl Worker for StorageWatcher {
    fn name(&self) -> &'static str {
        "storage watcher"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let (now, seen) = (ctx.now(), self.look(ctx));
        if seen.iter().any(|(_, fault)| fault.is_some()) {
            // A write to a file that is gone would succeed.
            *self.proved_at.lock() = None;
            note(ctx, seen);
        } else if self.is_due(now) {
            let (database, chain) = tokio::join!(prove_database(ctx), prove_chain(ctx));
            *self.proved_at.lock() = (database.is_ok() && chain.is_ok()).then_some(now);
            if ctx.store.engine() == Engine::Postgres {
                note_server(ctx, database.is_ok());
            }
            let proved = seen.into_iter().map(|(storage, _)| match storage {
                Storage::Database => (storage, database.clone().err()),
                Storage::Chain => (storage, chain.clone().err()),
            });
            note(ctx, proved);
        }
        Ok(Progress::Idle)
    }
}

fn note(ctx: &Ctx, faults: impl IntoIterator<Item = (Storage, Option<String>)>) {
    faults.into_iter().for_each(|(storage, fault)| ctx.process.serving.note_storage(storage, fault));
}

/// Commits a write to the database.
async fn prove_database(ctx: &Ctx) -> Result<(), String> {
    let input = (ctx.uuid().to_string(), ctx.now());
    let written = ctx.store.write(input, |tx, (id, now)| Box::pin(store::write_probes::write(tx, id, *now)));
    match tokio::time::timeout(TIMEOUT, written).await {
        // Somebody else holds a lock, which says nothing about the disk.
        Ok(Ok(()) | Err(StoreError::Locked(_))) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("a write takes longer than {} s", TIMEOUT.as_secs())),
    }
}

/// Commits a write to the embedded chain, if it is the chain in use.
async fn prove_chain(ctx: &Ctx) -> Result<(), String> {
    if ctx.chain.file().is_none() {
        return Ok(());
    }
    let chain = ctx.chain.clone();
    // The disk sync blocks its thread.
    let written = tokio::task::spawn_blocking(move || chain.probe_write());
    match tokio::time::timeout(TIMEOUT, written).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("a write takes longer than {} s", TIMEOUT.as_secs())),
    }
}

/// Notes whether the database server accepts writes.
fn note_server(ctx: &Ctx, accepts_writes: bool) {
    let detail = "The database accepts no writes.";
    let degradation = (!accepts_writes).then(|| Degradation::new(Reason::DatabaseRejectsWrites, detail));
    ctx.process.degradations.put(Reason::DatabaseRejectsWrites, degradation);
}
