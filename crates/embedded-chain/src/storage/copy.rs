//! Copies and inspects a chain's file, even while a node uses it.

use std::path::Path;
use std::time::Duration;

use alloy_primitives::B256;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{LAYOUT, hash_at, load};
use crate::error::EmbeddedError;

/// The maximum time for which a copy waits for the miner.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The identity of the chain in a file, and its newest block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainFile {
    pub chain_id: u64,
    /// The number of the newest block.
    pub head: u64,
    /// The hash of the newest block.
    pub hash: B256,
}

/// Copies the chain of the file `from` into the new file `to` and verifies the copy. The node may
/// continue to mine.
///
/// # Errors
///
/// If a file cannot be opened, `to` exists, or the copy cannot be read.
pub fn copy_file(from: &Path, to: &Path) -> Result<ChainFile, EmbeddedError> {
    let connection = open(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // `VACUUM INTO` writes a consistent snapshot. A plain file copy would miss the write-ahead log.
    connection.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    read_file(to)
}

/// Reads a chain's file like a start does, and verifies all of its pages.
///
/// # Errors
///
/// If the file is damaged, cannot be decoded, or has another layout.
pub fn read_file(path: &Path) -> Result<ChainFile, EmbeddedError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(EmbeddedError::corrupt("blocks", found));
    }
    let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if layout != LAYOUT {
        return Err(EmbeddedError::Layout { found: layout, expected: LAYOUT });
    }
    let chain_id = connection.query_row("SELECT chain_id FROM chain", [], |row| row.get(0))?;
    let chain = load::chain(&connection)?;
    Ok(ChainFile { chain_id, head: chain.head().header.number, hash: chain.head().hash })
}

/// Reads every page of a chain's file and checks its structure. Takes a second for about a gigabyte.
///
/// # Errors
///
/// If the file is damaged or cannot be read.
pub fn check_pages(path: &Path) -> Result<(), EmbeddedError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(EmbeddedError::corrupt("file", found)) }
}

/// Returns the hash of the block of that height in a chain's file, or `None` if the chain is
/// shorter.
///
/// # Errors
///
/// If the file cannot be read.
pub fn block_hash(path: &Path, number: u64) -> Result<Option<B256>, EmbeddedError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found = connection.query_row("SELECT hash FROM blocks WHERE number = ?1", [number], |row| {
        Ok(hash_at(row, 0, "blocks"))
    });
    found.optional()?.transpose()
}

/// Copies a database into the empty database `to`.
pub(super) fn into_connection(from: &Connection, to: &mut Connection) -> Result<(), EmbeddedError> {
    Ok(Backup::new(from, to)?.run_to_completion(i32::MAX, Duration::from_millis(1), None)?)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, EmbeddedError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}
