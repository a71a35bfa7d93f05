//! Reads data that is no longer in memory: old blocks and old values.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::{STATEMENTS, blob, hash_at, number, stored, view};
use crate::account::{AccountView, Bytecode};
use crate::block::{SealedBlock, StoredBlock};
use crate::error::EmbeddedError;

/// The number of read connections kept open between uses.
const IDLE_READERS: usize = 8;

/// A reader of old blocks and old values.
#[derive(Debug)]
pub(crate) enum Archive {
    /// A database in memory has a single connection, shared with the writer.
    Memory(Arc<Mutex<Connection>>),
    /// A file has its own read connections, which the write-ahead log never blocks.
    File { path: PathBuf, idle: Mutex<Vec<Connection>> },
}

impl Archive {
    /// Runs `read` on a read connection.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, EmbeddedError>,
    ) -> Result<T, EmbeddedError> {
        match self {
            Self::Memory(connection) => read(&connection.lock()),
            Self::File { path, idle } => {
                let kept = idle.lock().pop();
                // The pool does not limit the number of connections, only how many stay open.
                let connection = match kept {
                    Some(connection) => connection,
                    None => open_reader(path)?,
                };
                let answer = read(&connection);
                let mut idle = idle.lock();
                if idle.len() < IDLE_READERS {
                    idle.push(connection);
                }
                answer
            }
        }
    }

    /// Returns the path of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::File { path, .. } => Some(path),
        }
    }

    pub fn block(&self, number: u64) -> Result<Option<SealedBlock>, EmbeddedError> {
        self.read(|connection| block(connection, number))
    }

    /// Returns the number of the block with this hash.
    pub fn number(&self, hash: &B256) -> Result<Option<u64>, EmbeddedError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT number FROM blocks WHERE hash = ?1")?;
            Ok(statement.query_row([hash.as_slice()], |row| row.get(0)).optional()?)
        })
    }

    /// Returns the number of the block that contains the transaction.
    pub fn transaction(&self, hash: &B256) -> Result<Option<u64>, EmbeddedError> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT block FROM transactions WHERE hash = ?1")?;
            Ok(statement.query_row([hash.as_slice()], |row| row.get(0)).optional()?)
        })
    }
}

fn open_reader(path: &Path) -> Result<Connection, EmbeddedError> {
    let connection = Connection::open_with_flags(
        path,
        // Only one thread uses a connection at a time, so SQLite's own mutex is not needed.
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch("PRAGMA busy_timeout = 5000; PRAGMA cache_size = -4000;")?;
    Ok(connection)
}

/// Calls `visit` with the blocks of a range, lowest first, until it returns false.
pub(crate) fn scan(
    connection: &Connection,
    numbers: Range<u64>,
    mut visit: impl FnMut(StoredBlock<'_>) -> Result<bool, EmbeddedError>,
) -> Result<(), EmbeddedError> {
    let mut statement = connection.prepare_cached(
        "SELECT hash, header, sender, transaction_, receipt FROM blocks WHERE number >= ?1 AND number < ?2
         ORDER BY number",
    )?;
    let mut rows = statement.query([numbers.start, numbers.end])?;
    while let Some(row) = rows.next()? {
        if !visit(stored(row)?)? {
            break;
        }
    }
    Ok(())
}

pub(super) fn block(connection: &Connection, number: u64) -> Result<Option<SealedBlock>, EmbeddedError> {
    let mut found = None;
    scan(connection, number..number.saturating_add(1), |stored| {
        found = Some(stored.decode()?);
        Ok(false)
    })?;
    Ok(found)
}

/// Returns the account as `block` left it, or `None` if it did not exist then. `code` looks up code
/// by its hash.
pub(crate) fn past_account(
    connection: &Connection,
    account: i64,
    block: u64,
    code: impl Fn(&B256) -> Option<Bytecode>,
) -> Result<Option<AccountView>, EmbeddedError> {
    let mut statement = connection.prepare_cached(
        "SELECT nonce, balance, code_hash FROM account_history WHERE account = ?1 AND block <= ?2
         ORDER BY block DESC LIMIT 1",
    )?;
    let mut rows = statement.query(params![account, block])?;
    rows.next()?.map(|row| view(row, code)).transpose()
}

/// Returns the slot's value as `block` left it.
pub(crate) fn past_slot(
    connection: &Connection,
    account: i64,
    slot: U256,
    block: u64,
) -> Result<U256, EmbeddedError> {
    let mut statement = connection.prepare_cached(
        "SELECT value FROM slot_history WHERE account = ?1 AND slot = ?2 AND block <= ?3
         ORDER BY block DESC LIMIT 1",
    )?;
    let mut rows = statement.query(params![account, slot.to_be_bytes_trimmed_vec(), block])?;
    Ok(rows.next()?.map(|row| blob(row, 0).map(number)).transpose()?.unwrap_or_default())
}

/// Returns the hash of the block with this number, or zero if there is none.
pub(crate) fn past_hash(connection: &Connection, number: u64) -> Result<B256, EmbeddedError> {
    let mut statement = connection.prepare_cached("SELECT hash FROM blocks WHERE number = ?1")?;
    let mut rows = statement.query([number])?;
    Ok(rows.next()?.map(|row| hash_at(row, 0, "blocks")).transpose()?.unwrap_or_default())
}
