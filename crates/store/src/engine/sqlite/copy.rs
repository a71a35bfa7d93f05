//! Copies of a database file that is in use.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::fault::refused;
use crate::StoreError;

/// Copies the current database in the file `from` into the new file `to`. Other processes may write
/// to `from` meanwhile.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(from, flags).map_err(refused)?;
    // Longer than the timeout of ordinary connections: a backup can wait.
    connection.busy_timeout(std::time::Duration::from_secs(30)).map_err(refused)?;
    let to = to.to_str().ok_or_else(|| StoreError::driver("the path of a copy must be UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [to]).map_err(refused).map(drop)
}

/// Returns the number and hash of the last block that the sync stored.
pub(crate) fn last_block(path: &Path) -> Result<Option<(u64, String)>, StoreError> {
    const SQL: &str = "SELECT number, hash FROM sync_blocks ORDER BY number DESC LIMIT 1";
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    let found = connection.query_row(SQL, [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
    let found = found.optional().map_err(refused)?;
    Ok(found.map(|(number, hash)| (number.unsigned_abs(), hash)))
}

/// Checks the integrity of every page and index of the file.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    let found: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(refused)?;
    if found == "ok" {
        return Ok(());
    }
    Err(StoreError::driver(format!("{} is damaged: {found}", path.display())))
}
