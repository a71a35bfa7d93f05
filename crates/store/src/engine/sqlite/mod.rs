//! SQLite: one writer thread with group commit, and readers on the caller's thread.

mod connection;
mod copy;
mod fault;
mod file_state;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub(super) use connection::SqliteConnection;
pub(super) use copy::{check, copy, last_block};
use file_state::FileState;
use tokio::sync::oneshot;
use writer::Writer;

use super::Tx;
use super::changes::Changes;
use super::tx::Conn;
use crate::StoreError;

/// The number of idle readers that stay open. More run at once only if the runtime has more
/// threads; those are closed after use.
const IDLE_READERS: usize = 8;

pub(crate) struct Sqlite {
    file: Arc<FileState>,
    writer: Writer,
    /// `None` once the store is closed.
    readers: Mutex<Option<Vec<Tx>>>,
}

impl Sqlite {
    pub(super) fn open(path: &str, changes: Arc<Changes>) -> Result<Self, StoreError> {
        // Every connection to `:memory:` would open a database of its own.
        if path.is_empty() || path.contains(['?', '\0']) || path == ":memory:" {
            return Err(StoreError::driver(
                "a SQLite URL must name a file, such as sqlite:/path/to/file.db, and have no options",
            ));
        }
        if Path::new(path).is_dir() {
            return Err(StoreError::unavailable("the database's path is a directory"));
        }
        let file = Arc::new(FileState::new(path));
        let writer = Writer::start(SqliteConnection::writer(Arc::clone(&file))?, changes)?;
        Ok(Self { file, writer, readers: Mutex::new(Some(Vec::new())) })
    }

    /// Checks that the file is one of this service and is not damaged. A check that takes longer than
    /// `wait` goes on, and [`Self::damage`] then has its result.
    pub(super) async fn check_file(&self, wait: Duration) -> Result<(), StoreError> {
        self.file.check_owner()?;
        let (file, (done, checked)) = (Arc::clone(&self.file), oneshot::channel());
        std::thread::Builder::new()
            .name("store-check".to_owned())
            // Nobody may wait for the result any more.
            .spawn(move || drop(done.send(file.check())))
            .map_err(|e| StoreError::unavailable(format!("could not start the check of the file: {e}")))?;
        match tokio::time::timeout(wait, checked).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(StoreError::driver("the check of the file ended without a result")),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn damage(&self) -> Option<StoreError> {
        self.file.damage()
    }

    pub(super) async fn write<I, T, E, F>(&self, input: I, unit: F) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    {
        self.writer.run(input, unit).await
    }

    /// Runs a unit on an idle or a new reader. A panic of the unit propagates to the caller and
    /// closes its reader.
    pub(super) fn read<I, T, E, F>(&self, input: &I, unit: F) -> Result<T, E>
    where
        E: From<StoreError>,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>>,
    {
        let mut tx = self.reader()?;
        let outcome = tx.run(input, &unit).now_or_never().unwrap_or_else(|| Err(E::from(pended())));
        // Clears a failure of this unit, so that the reader can be used again.
        tx.reset();
        if let Some(idle) = self.readers.lock().as_mut()
            && idle.len() < IDLE_READERS
        {
            idle.push(tx);
        }
        outcome
    }

    fn reader(&self) -> Result<Tx, StoreError> {
        match self.readers.lock().as_mut() {
            None => return Err(closed()),
            Some(idle) => {
                if let Some(tx) = idle.pop() {
                    return Ok(tx);
                }
            }
        }
        Ok(Tx::reader(Conn::Sqlite(SqliteConnection::reader(Arc::clone(&self.file))?)))
    }

    pub(super) fn path(&self) -> &Path {
        self.file.as_path()
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        self.writer.check_open()
    }

    pub(super) async fn close(&self) {
        self.writer.close().await;
        *self.readers.lock() = None;
    }
}

fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}

/// SQLite operations never return `Pending`, so a unit that does awaits something other than its
/// `Tx`.
fn pended() -> StoreError {
    StoreError::driver("a unit of work awaited something other than its Tx")
}
