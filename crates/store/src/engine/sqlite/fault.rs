//! Mapping of SQLite errors to store errors.

use rusqlite::{Connection, Error, ErrorCode, ffi};

use super::super::fault::EngineFault;
use crate::StoreError;

/// Maps the error of an operation on `sqlite`.
pub(super) fn fault(sqlite: &Connection, error: Error) -> EngineFault {
    let Error::SqliteFailure(code, Some(message)) = &error else {
        return EngineFault::give_up(refused(error));
    };
    let constraint = match code.extended_code {
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => primary_key(message),
        ffi::SQLITE_CONSTRAINT_UNIQUE => unique_rule(sqlite, message),
        _ => return EngineFault::give_up(refused(error)),
    };
    EngineFault::give_up(StoreError::Conflict { constraint })
}

/// Maps an error that cannot be a unique violation. SQLite's messages contain names of tables,
/// columns and checks, but no values.
pub(super) fn refused(error: Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::OperationInterrupted,
        ) => StoreError::unavailable(error.to_string()),
        _ => StoreError::driver(error.to_string()),
    }
}

/// Parses "UNIQUE constraint failed: trades.user_id, trades.idempotency_key" into `trades` and
/// `[user_id, idempotency_key]`.
fn table_and_columns(message: &str) -> Option<(&str, Vec<&str>)> {
    let (_, names) = message.split_once(": ")?;
    let parts: Option<Vec<(&str, &str)>> = names.split(", ").map(|name| name.split_once('.')).collect();
    let parts = parts?;
    let (table, _) = parts.first()?;
    Some((table, parts.iter().map(|(_, column)| *column).collect()))
}

fn primary_key(message: &str) -> String {
    table_and_columns(message).map_or_else(|| message.to_owned(), |(table, _)| format!("{table}_pkey"))
}

/// Returns the name that PostgreSQL would report for the constraint. SQLite reports only the
/// columns, except for an index over an expression, so the name is looked up in the schema.
fn unique_rule(sqlite: &Connection, message: &str) -> String {
    if let Some((_, quoted)) = message.split_once("index '") {
        return quoted.trim_end_matches('\'').to_owned();
    }
    let Some((table, columns)) = table_and_columns(message) else { return message.to_owned() };
    index_over(sqlite, table, &columns.join(",")).ok().unwrap_or_else(|| {
        let columns = columns.join("_");
        format!("{table}_{columns}_key")
    })
}

/// Looks up the named unique index over exactly these columns.
fn index_over(sqlite: &Connection, table: &str, columns: &str) -> rusqlite::Result<String> {
    let mut statement = sqlite.prepare_cached(
        "SELECT i.name FROM pragma_index_list($1) i WHERE i.\"unique\" = 1 AND i.origin = 'c' AND $2 =
         (SELECT group_concat(c.name, ',') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) c)
         ORDER BY i.name LIMIT 1",
    )?;
    statement.query_row((table, columns), |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_have_the_names_that_postgresql_uses() {
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite
            .execute_batch(
                "CREATE TABLE t (id TEXT NOT NULL PRIMARY KEY, a TEXT, b TEXT, c TEXT UNIQUE, d TEXT);
                 CREATE INDEX t_plain ON t (b, a);
                 CREATE UNIQUE INDEX t_pair ON t (b, a);
                 CREATE UNIQUE INDEX t_low ON t (lower(d));
                 INSERT INTO t VALUES ('1', 'x', 'y', 'z', 'w')",
            )
            .unwrap();
        for (row, name) in [
            ("'1', 'p', 'q', 'r', 's'", "t_pkey"),
            ("'2', 'p', 'q', 'z', 's'", "t_c_key"),
            ("'2', 'x', 'y', 'r', 's'", "t_pair"),
            ("'2', 'p', 'q', 'r', 'W'", "t_low"),
        ] {
            let error = sqlite.execute_batch(&format!("INSERT INTO t VALUES ({row})")).unwrap_err();
            let conflict = StoreError::Conflict { constraint: name.to_owned() };
            assert_eq!(fault(&sqlite, error).error, conflict);
        }
    }
}
