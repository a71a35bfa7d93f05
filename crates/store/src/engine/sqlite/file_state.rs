//! What is known of the file of a database: whether it is damaged.

use std::path::Path;

use parking_lot::Mutex;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, OptionalExtension};

use super::fault::refused;
use crate::StoreError;

/// The state of the file, shared by its connections. Damage lasts until the process ends: what was
/// read before may be wrong too.
pub(super) struct FileState {
    path: String,
    damage: Mutex<Option<String>>,
}

impl FileState {
    pub(super) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), damage: Mutex::default() }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Notes an error if it shows that the file is damaged or is no database.
    pub(super) fn note(&self, error: &Error) {
        if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
            self.note_damage(error.to_string());
        }
    }

    fn note_damage(&self, what: String) {
        self.damage.lock().get_or_insert(what);
    }

    pub(super) fn damage(&self) -> Option<StoreError> {
        let detail = self.damage.lock().clone()?;
        Some(StoreError::Damaged { path: self.path.clone(), detail })
    }

    /// Reads every page and checks its structure. Takes a second for about a gigabyte.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self.find_damage() {
            Ok(None) => {}
            Ok(Some(what)) => self.note_damage(what),
            Err(error) => {
                self.note(&error);
                if self.damage().is_none() {
                    return Err(refused(error));
                }
            }
        }
        self.damage().map_or(Ok(()), Err)
    }

    fn find_damage(&self) -> rusqlite::Result<Option<String>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        Ok((found != "ok").then_some(found))
    }

    /// Checks that the file has no tables, or those of this service.
    pub(super) fn check_owner(&self) -> Result<(), StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| {
            self.note(&error);
            self.damage().unwrap_or_else(|| refused(error))
        };
        let connection = Connection::open_with_flags(&self.path, flags).map_err(failed)?;
        let foreign = "SELECT name FROM sqlite_master WHERE type = 'table' AND NOT EXISTS
            (SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations') LIMIT 1";
        let table: Option<String> =
            connection.query_row(foreign, [], |row| row.get(0)).optional().map_err(failed)?;
        match table {
            None => Ok(()),
            Some(table) => Err(StoreError::Foreign { path: self.path.clone(), table }),
        }
    }

    pub(super) fn as_path(&self) -> &Path {
        Path::new(&self.path)
    }
}
