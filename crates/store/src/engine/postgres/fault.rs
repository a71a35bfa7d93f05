//! PostgreSQL's errors in the store's words.

use std::error::Error as _;
use std::io;

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

use super::super::fault::{After, Fault};
use super::closed;
use crate::StoreError;

/// How the driver says that the server broke the protocol, as one that is dying may. It has no kind to match on.
const UNEXPECTED: &str = "unexpected message from server";

/// The fault of an operation on a connection.
pub(super) fn fault(error: Error) -> Fault {
    if let Some(refused) = error.as_db_error() {
        return refusal(refused);
    }
    let text = error.to_string();
    if error.is_closed() || is_io(&error) || text == UNEXPECTED {
        return Fault { error: StoreError::unavailable(text), after: After::Lost };
    }
    // What the driver itself refuses, such as a value of the wrong type; its causes are our own words, not values.
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    Fault::give_up(StoreError::driver(format!("{text}{cause}")))
}

/// The fault of a statement that was not answered in time, not even with the server's own timeout.
pub(super) fn hung() -> Fault {
    Fault { error: StoreError::unavailable("the database does not answer"), after: After::Hung }
}

/// Why the pool gives no connection.
pub(super) fn no_connection(error: PoolError) -> StoreError {
    match error {
        PoolError::Closed => closed(),
        PoolError::Timeout(_) => StoreError::unavailable("no connection became free in time"),
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            StoreError::unavailable(match error.as_db_error() {
                Some(refused) => describe(refused),
                None => error.to_string(),
            })
        }
        other => StoreError::driver(other.to_string()),
    }
}

fn refusal(refused: &DbError) -> Fault {
    let text = || describe(refused);
    let unavailable = |after| Fault { error: StoreError::unavailable(text()), after };
    // The server ends the session with this answer, whatever the reason: it shuts down, crashes, or was told to.
    if matches!(refused.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) {
        return unavailable(After::Lost);
    }
    match refused.code().code() {
        // A serialization failure, a deadlock.
        "40001" | "40P01" => unavailable(After::Again),
        "23505" => {
            let constraint = refused.constraint().or(refused.table()).unwrap_or("unknown").to_owned();
            Fault::give_up(StoreError::Conflict { constraint })
        }
        // `lock_timeout`.
        "55P03" => Fault::give_up(StoreError::Locked(text())),
        // A server that only reads: after a failover another connection leads to the one that writes.
        "25006" => unavailable(After::Lost),
        // Connection trouble (08), no resources (53), interventions and `statement_timeout` (57), faults of the server's
        // system (58) and of the server itself (XX).
        code if ["08", "53", "57", "58", "XX"].iter().any(|class| code.starts_with(class)) => {
            unavailable(After::GiveUp)
        }
        _ => Fault::give_up(StoreError::driver(text())),
    }
}

/// The refusal without the values that PostgreSQL quotes in its messages and details. Messages of class 42 speak of
/// the statement's own names and are needed to find the mistake.
fn describe(refused: &DbError) -> String {
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
