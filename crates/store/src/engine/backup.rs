//! Online backups of a SQLite database, while other processes use it.

use std::path::Path;

use super::sqlite;
use crate::StoreError;

/// Copies the current database in the file `from` into the new file `to`, and checks the copy.
///
/// # Errors
/// `Unavailable` if a file cannot be opened. `Driver` if `to` exists or the copy is damaged.
pub fn copy_sqlite(from: &Path, to: &Path) -> Result<(), StoreError> {
    sqlite::copy(from, to)?;
    sqlite::check(to)
}

/// Returns the number and hash of the last block that the sync stored in a SQLite file.
///
/// # Errors
/// `Unavailable` if the file cannot be opened. `Driver` if it has a different schema.
pub fn last_block(path: &Path) -> Result<Option<(u64, String)>, StoreError> {
    sqlite::last_block(path)
}

/// Checks the integrity of every page and index of a SQLite file.
///
/// # Errors
/// The same as [`copy_sqlite`].
pub fn check_sqlite(path: &Path) -> Result<(), StoreError> {
    sqlite::check(path)
}
