//! Backups of a SQLite database, beside the processes that use it.

use std::path::Path;

use super::sqlite;
use crate::StoreError;

/// Writes the database of the file `from`, as it is now, into the new file `to`, and checks the copy.
///
/// # Errors
/// `Unavailable` if a file cannot be opened, `Driver` if `to` exists or the copy is damaged.
pub fn copy_sqlite(from: &Path, to: &Path) -> Result<(), StoreError> {
    sqlite::copy(from, to)?;
    sqlite::check(to)
}

/// The number and the hash of the last block that the database in a SQLite file has read.
///
/// # Errors
/// `Unavailable` if the file cannot be opened, `Driver` if it has another schema.
pub fn last_block(path: &Path) -> Result<Option<(u64, String)>, StoreError> {
    sqlite::last_block(path)
}

/// Checks that every page and index of a SQLite file is whole.
///
/// # Errors
/// As [`copy_sqlite`].
pub fn check_sqlite(path: &Path) -> Result<(), StoreError> {
    sqlite::check(path)
}
