//! Mapping of PostgreSQL errors to store errors.

use std::error::Error as _;
use std::io;

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

use super::super::fault::{After, EngineFault};
use super::closed;
use super::connect_fault::describe_connect;
use crate::StoreError;

/// The driver's message for a protocol violation, which a crashing server may cause. The driver has
/// no error kind for it.
const UNEXPECTED: &str = "unexpected message from server";

/// The reason of an error that only happens behind a pooler.
pub(super) const LOST_STATEMENT: &str =
    "a pooler lost a prepared statement: set statements=unnamed in the database URL";

/// Maps the error of an operation on a connection.
pub(super) fn fault(error: Error) -> EngineFault {
    if let Some(refused) = error.as_db_error() {
        return refusal(refused);
    }
    let text = error.to_string();
    if error.is_closed() || is_io(&error) || text == UNEXPECTED {
        return EngineFault { error: StoreError::unavailable(text), after: After::Lost };
    }
    // An error of the driver itself, such as a value of the wrong type. Its source is text of this
    // crate and contains no bound values.
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    EngineFault::give_up(StoreError::driver(format!("{text}{cause}")))
}

/// The fault for a statement that was not answered in time. The server's own statement timeout
/// should have ended it before.
pub(super) fn hung() -> EngineFault {
    EngineFault { error: StoreError::unavailable("the database does not answer"), after: After::Hung }
}

/// Maps the pool's error when no connection is available.
pub(super) fn no_connection(error: PoolError) -> StoreError {
    match error {
        PoolError::Closed => closed(),
        PoolError::Timeout(_) => StoreError::unavailable("no database connection became free in time"),
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            StoreError::unavailable(describe_connect(&error))
        }
        other => StoreError::driver(other.to_string()),
    }
}

fn refusal(refused: &DbError) -> EngineFault {
    let text = || describe(refused);
    let unavailable = |after| EngineFault { error: StoreError::unavailable(text()), after };
    // The server ends the session with this error: it shuts down, crashes, or an administrator
    // ended the session.
    if matches!(refused.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) {
        return unavailable(After::Lost);
    }
    match refused.code().code() {
        // Serialization failure, deadlock.
        "40001" | "40P01" => unavailable(After::Again),
        // No such statement, and a statement of that name: a pooler has given this transaction another
        // session.
        code @ ("26000" | "42P05") => {
            let text = format!("SQLSTATE {code}: {LOST_STATEMENT}");
            EngineFault { error: StoreError::unavailable(text), after: After::Unprepared }
        }
        // Unique violation.
        "23505" => {
            let constraint = refused.constraint().or(refused.table()).unwrap_or("unknown").to_owned();
            EngineFault::give_up(StoreError::Conflict { constraint })
        }
        // The error of `lock_timeout`.
        "55P03" => EngineFault::give_up(StoreError::Locked(text())),
        // The server is read-only. After a failover, a new connection may reach the new primary.
        "25006" => unavailable(After::Lost),
        // Connection errors (08), insufficient resources (53), operator intervention and
        // `statement_timeout` (57), system errors (58), internal errors (XX).
        code if ["08", "53", "57", "58", "XX"].iter().any(|class| code.starts_with(class)) => {
            unavailable(After::GiveUp)
        }
        _ => EngineFault::give_up(StoreError::driver(text())),
    }
}

/// Describes an error without the values that PostgreSQL quotes in its messages. Messages of class
/// 42 (syntax and names) contain only names from the statement and are needed for debugging.
pub(super) fn describe(refused: &DbError) -> String {
    let code = refused.code().code();
    let mut text = format!("SQLSTATE {code}");
    if code.starts_with("42") {
        text.push_str(": ");
        text.push_str(refused.message());
    }
    for (what, name) in
        [("table", refused.table()), ("column", refused.column()), ("constraint", refused.constraint())]
    {
        if let Some(name) = name {
            text.push_str(&format!(", {what} {name}"));
        }
    }
    text
}

fn is_io(error: &Error) -> bool {
    error.source().is_some_and(|cause| cause.is::<io::Error>())
}
