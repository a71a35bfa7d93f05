//! PostgreSQL's errors in the store's words.

use std::error::Error as _;
use std::io;

use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::DbError;

use super::super::fault::{After, Fault};
use super::closed;
use crate::StoreError;

/// The fault of an operation on a connection.
pub(super) fn fault(error: Error) -> Fault {
    if let Some(refused) = error.as_db_error() {
        return refusal(refused);
    }
    if error.is_closed() || is_io(&error) {
        return Fault { error: StoreError::unavailable(error.to_string()), after: After::Lost };
    }
    // What the driver itself refuses, such as a value of the wrong type; its causes are our own words, not values.
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    Fault::give_up(StoreError::driver(format!("{error}{cause}")))
}

/// Why the pool gives no connection.
pub(super) fn no_connection(error: PoolError) -> StoreError {
    match error {
        PoolError::Closed => closed(),
        PoolError::Timeout(_) => StoreError::unavailable("no connection became free in time"),
        PoolError::Backend(error) => StoreError::unavailable(match error.as_db_error() {
            Some(refused) => describe(refused),
            None => error.to_string(),
        }),
        other => StoreError::driver(other.to_string()),
    }
}

fn refusal(refused: &DbError) -> Fault {
    let text = || describe(refused);
    let (error, after) = match refused.code().code() {
        "40001" | "40P01" => (StoreError::unavailable(text()), After::Again),
        "23505" => {
            let constraint = refused.constraint().or(refused.table()).unwrap_or("unknown").to_owned();
            (StoreError::Conflict { constraint }, After::GiveUp)
        }
        // The server ends the session: shut down, crashed, or terminated by its administrator.
        "57P01" | "57P02" | "57P03" | "57P05" => (StoreError::unavailable(text()), After::Lost),
        // Connection trouble, no resources, interventions, a lock not had in time, a server that only reads.
        code if code.starts_with("08") || code.starts_with("53") || code.starts_with("57") => {
            (StoreError::unavailable(text()), After::GiveUp)
        }
        "55P03" | "25006" | "25P03" => (StoreError::unavailable(text()), After::GiveUp),
        _ => (StoreError::driver(text()), After::GiveUp),
    };
    Fault { error, after }
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
