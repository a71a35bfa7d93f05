//! SQLite: one writer thread with group commit, and readers on the caller's thread.

mod connection;
mod copy;
mod fault;
mod writer;

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub(super) use connection::SqliteConnection;
pub(super) use copy::{check, copy, last_block};
use writer::Writer;

use super::Tx;
use super::changes::Changes;
use super::tx::Conn;
use crate::StoreError;

/// The number of idle readers that stay open. More run at once only if the runtime has more
/// threads; those are closed after use.
const IDLE_READERS: usize = 8;

pub(crate) struct Sqlite {
    path: String,
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
        let writer = Writer::start(SqliteConnection::writer(path)?, changes)?;
        Ok(Self { path: path.to_owned(), writer, readers: Mutex::new(Some(Vec::new())) })
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
        Ok(Tx::reader(Conn::Sqlite(SqliteConnection::reader(&self.path)?)))
    }

    #[cfg(feature = "test-support")]
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
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
