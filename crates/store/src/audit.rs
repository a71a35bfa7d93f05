//! Failed authentications of known keys. Equal failures within a minute share a row, so that a
//! flood of requests does not cause a flood of writes. Of the key, only the id is stored.

use std::net::IpAddr;

use domain::ids::KeyId;
use domain::{ErrorCode, Timestamp};

use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// Equal failures within one minute.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AuditEntry {
        pub key_id: KeyId,
        /// The start of the minute.
        pub minute: Timestamp = "minute_ms",
        /// The error code that the requests were answered with.
        pub code: ErrorCode,
        /// The client's address.
        pub ip: IpAddr,
        /// The route of the first failure.
        pub route: String,
        /// The request id of the first failure.
        pub request_id: String,
        pub first_at: Timestamp = "first_at_ms",
        pub last_at: Timestamp = "last_at_ms",
        pub failures: u32,
    }
}

/// Adds failures to the stored counts. The entries must be sorted by key, so that two processes
/// that write the same rows lock them in the same order and cannot deadlock.
pub async fn add(tx: &mut Tx, entries: &[AuditEntry]) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO key_audit (key_id, minute_ms, code, ip, route, request_id, first_at_ms, last_at_ms, failures)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (key_id, minute_ms, code, ip) DO UPDATE SET failures = key_audit.failures + excluded.failures,
        last_at_ms = CASE WHEN excluded.last_at_ms > key_audit.last_at_ms THEN excluded.last_at_ms
        ELSE key_audit.last_at_ms END";
    let rows: Vec<Vec<SqlValue<'_>>> = entries.iter().map(values).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

fn values(entry: &AuditEntry) -> Vec<SqlValue<'_>> {
    params![
        entry.key_id,
        entry.minute,
        entry.code.as_str(),
        entry.ip.to_string(),
        &entry.route,
        &entry.request_id,
        entry.first_at,
        entry.last_at,
        entry.failures
    ]
    .to_vec()
}

/// Lists a key's failures, newest minute first.
pub async fn list(tx: &mut Tx, key_id: KeyId, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        AuditEntry::COLUMNS,
        " FROM key_audit WHERE key_id = $1 ORDER BY minute_ms DESC, code, ip LIMIT $2"
    );
    tx.list(SQL, &params![key_id, limit], AuditEntry::from_row).await
}

/// Deletes at most `limit` rows from before `before` and returns their number.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    // The subquery is needed because `DELETE` has no `LIMIT` in PostgreSQL.
    const SQL: &str = "DELETE FROM key_audit WHERE (key_id, minute_ms, code, ip) IN
        (SELECT key_id, minute_ms, code, ip FROM key_audit WHERE minute_ms < $1 ORDER BY minute_ms LIMIT $2)";
    tx.exec(SQL, &params![before, limit]).await
}
