//! A SQLite connection and the statements that run on it.

use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::functions::FunctionFlags;
use rusqlite::{CachedStatement, OpenFlags};

use super::super::fault::EngineFault;
use super::super::{Row, SqlValue};
use super::fault::{fault, refused};
use super::file_state::FileState;
use crate::StoreError;

/// Attempts at switching to the write-ahead log when several processes start at once.
const SWITCHES: usize = 50;
/// More than the number of the service's statements, so that each is prepared only once per
/// connection.
const STATEMENT_CACHE: usize = 512;

/// The maximum wait for another process's lock.
const BUSY_TIMEOUT_MS: i64 = 5_000;

pub(crate) struct SqliteConnection {
    sqlite: rusqlite::Connection,
    file: Arc<FileState>,
}

/// Replaces `LOWER` by a version for all of Unicode, like PostgreSQL's. SQLite's own handles only
/// ASCII.
fn lower_all_letters(sqlite: &rusqlite::Connection) -> rusqlite::Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    sqlite.create_scalar_function("lower", 1, flags, |call| {
        let text = call.get_raw(0).as_str_or_null()?;
        Ok(text.map(str::to_lowercase))
    })
}

impl SqliteConnection {
    /// Opens the connection that writes. Creates the file and sets its journal mode.
    pub(super) fn writer(file: Arc<FileState>) -> Result<Self, StoreError> {
        let conn = Self::open(file, OpenFlags::SQLITE_OPEN_CREATE)?;
        conn.write_ahead()?;
        // `FULL`: in WAL mode, `NORMAL` may lose acknowledged commits when the power fails.
        conn.pragmas(&[
            ("synchronous", "FULL"),
            ("foreign_keys", "ON"),
            ("temp_store", "MEMORY"),
            ("cache_size", "-16000"),
            // Pages. Each checkpoint writes the pages that changed since the last one, most of them
            // many times.
            ("wal_autocheckpoint", "8000"),
            ("journal_size_limit", "67108864"),
        ])?;
        Ok(conn)
    }

    /// Switches the file to a write-ahead log, which is a permanent property of the file. SQLite
    /// reports "busy" at once if two processes switch at the same time. In that case, wait for the
    /// other's lock and try again.
    fn write_ahead(&self) -> Result<(), StoreError> {
        let switch = || self.sqlite.pragma_update(None, "journal_mode", "WAL");
        let is_busy = |e: &rusqlite::Error| e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        for _ in 1..SWITCHES {
            match switch() {
                // This wait may fail as well. Only the result of the next switch matters.
                Err(e) if is_busy(&e) => drop(self.sqlite.execute_batch("BEGIN IMMEDIATE; COMMIT")),
                done => return done.map_err(|e| self.refused(e)),
            }
        }
        switch().map_err(|e| self.refused(e))
    }

    /// Opens a connection that cannot write.
    pub(super) fn reader(file: Arc<FileState>) -> Result<Self, StoreError> {
        let conn = Self::open(file, OpenFlags::empty())?;
        // The file itself is opened for writing, because readers of a write-ahead log update its
        // shared-memory index.
        conn.pragmas(&[("query_only", "ON"), ("temp_store", "MEMORY")])?;
        Ok(conn)
    }

    fn open(file: Arc<FileState>, more: OpenFlags) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let sqlite = rusqlite::Connection::open_with_flags(file.path(), flags).map_err(refused)?;
        sqlite.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
        // Make query plans independent of bound values. Otherwise SQLite prepares a cached
        // statement again on every use if its plan may depend on a value (a LIKE, a partial index),
        // which costs more than running it.
        sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(refused)?;
        lower_all_letters(&sqlite).map_err(refused)?;
        let conn = Self { sqlite, file };
        conn.sqlite.pragma_update(None, "busy_timeout", BUSY_TIMEOUT_MS).map_err(|e| conn.refused(e))?;
        Ok(conn)
    }

    fn pragmas(&self, pragmas: &[(&str, &str)]) -> Result<(), StoreError> {
        pragmas.iter().try_for_each(|(name, value)| {
            self.sqlite.pragma_update(None, name, value).map_err(|e| self.refused(e))
        })
    }

    /// Reports whether no transaction is open. Inside a group of writes this means that SQLite has
    /// rolled back by itself.
    pub(super) fn is_autocommit(&self) -> bool {
        self.sqlite.is_autocommit()
    }

    /// Runs a transaction control statement.
    pub(super) fn control(&self, sql: &'static str) -> Result<(), StoreError> {
        let run = || self.sqlite.prepare_cached(sql)?.raw_execute();
        run().map(|_| ()).map_err(|e| self.fault(e).error)
    }

    /// Commits. If the disk fails during the commit, the log may contain the whole transaction, and
    /// the next start would then apply it.
    pub(super) fn commit(&self) -> Result<(), StoreError> {
        let commit = || self.sqlite.prepare_cached("COMMIT")?.raw_execute();
        commit().map(|_| ()).map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::SystemIoFailure) => StoreError::commit_unknown(error.to_string()),
            _ => self.refused(error),
        })
    }

    /// Maps the error of an operation, and notes whether it shows that the file is damaged.
    fn fault(&self, error: rusqlite::Error) -> EngineFault {
        self.file.note(&error);
        fault(&self.sqlite, error)
    }

    /// Like [`Self::fault`], for an error that cannot be a unique violation.
    fn refused(&self, error: rusqlite::Error) -> StoreError {
        self.file.note(&error);
        self.file.damage().unwrap_or_else(|| refused(error))
    }

    pub(crate) fn exec(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<u64, EngineFault> {
        self.prepare(sql).and_then(|mut statement| self.exec_prepared(&mut statement, params))
    }

    pub(crate) fn exec_each(
        &mut self,
        sql: &str,
        rows: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<u64>, EngineFault> {
        let mut statement = self.prepare(sql)?;
        rows.iter().map(|params| self.exec_prepared(&mut statement, params)).collect()
    }

    pub(crate) fn find<T>(
        &mut self,
        sql: &'static str,
        params: &[SqlValue<'_>],
        map: &impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, EngineFault> {
        let mut statement = self.prepare(sql)?;
        let writes = !statement.readonly();
        self.bind(&mut statement, params)?;
        let mut rows = statement.raw_query();
        let Some(row) = rows.next().map_err(|e| self.fault(e))? else { return Ok(None) };
        let found = map(&Row::sqlite(row));
        // A statement with RETURNING takes full effect only when it is stepped to its end.
        while writes && rows.next().map_err(|e| self.fault(e))?.is_some() {}
        Ok(Some(found?))
    }

    pub(crate) fn list<T>(
        &mut self,
        sql: &str,
        params: &[SqlValue<'_>],
        map: &impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, EngineFault> {
        let mut listed = Vec::new();
        self.for_each(sql, params, &mut |row| {
            listed.push(map(row)?);
            Ok(())
        })?;
        Ok(listed)
    }

    /// Calls `take` with each row of the result, until it fails.
    pub(crate) fn for_each(
        &mut self,
        sql: &str,
        params: &[SqlValue<'_>],
        take: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), EngineFault> {
        let mut statement = self.prepare(sql)?;
        self.bind(&mut statement, params)?;
        let mut rows = statement.raw_query();
        let mut taken = Ok(());
        while let Some(row) = rows.next().map_err(|e| self.fault(e))? {
            // Step to the end even after a row that cannot be mapped, for the same reason as in
            // `find`.
            if taken.is_ok() {
                taken = take(&Row::sqlite(row));
            }
        }
        Ok(taken?)
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), EngineFault> {
        self.sqlite.execute_batch(sql).map_err(|e| self.fault(e))
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, EngineFault> {
        self.sqlite.prepare_cached(sql).map_err(|e| self.fault(e))
    }

    fn exec_prepared(
        &self,
        statement: &mut CachedStatement<'_>,
        params: &[SqlValue<'_>],
    ) -> Result<u64, EngineFault> {
        self.bind(statement, params)?;
        if statement.column_count() > 0 {
            return Err(EngineFault::give_up(StoreError::driver("exec ran a statement that gives rows")));
        }
        statement.raw_execute().map(|rows| rows as u64).map_err(|e| self.fault(e))
    }

    fn bind(&self, statement: &mut CachedStatement<'_>, params: &[SqlValue<'_>]) -> Result<(), EngineFault> {
        if statement.parameter_count() != params.len() {
            let (takes, given) = (statement.parameter_count(), params.len());
            let text = format!("a statement takes {takes} parameters, {given} were given");
            return Err(EngineFault::give_up(StoreError::driver(text)));
        }
        for (at, value) in params.iter().enumerate() {
            statement.raw_bind_parameter(at + 1, value).map_err(|e| self.fault(e))?;
        }
        Ok(())
    }
}
