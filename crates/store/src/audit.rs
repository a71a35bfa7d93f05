//! Failed authentications of known keys. Equal ones of a minute share a row, so that a flood of them becomes no flood of
//! writes. Nothing of a key but its id is kept.

use std::net::IpAddr;

use domain::ids::KeyId;
use domain::{ErrorCode, Timestamp};

use crate::{Row, StoreError, Tx, Value, params};

/// Equal failures of one minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Whose failures they are.
    pub key_id: KeyId,
    /// The beginning of the minute.
    pub minute: Timestamp,
    /// What they were refused with.
    pub code: ErrorCode,
    /// Where they came from.
    pub ip: IpAddr,
    /// The first one's route.
    pub route: String,
    /// The first one's request id.
    pub request_id: String,
    /// When the first came.
    pub first_at: Timestamp,
    /// When the last came.
    pub last_at: Timestamp,
    /// How many there were.
    pub failures: u32,
}

fn from_row(row: &Row<'_>) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        key_id: row.parse(0)?,
        minute: row.timestamp(1)?,
        code: row.parse(2)?,
        ip: row.parse(3)?,
        route: row.text(4)?,
        request_id: row.text(5)?,
        first_at: row.timestamp(6)?,
        last_at: row.timestamp(7)?,
        failures: row.number(8)?,
    })
}

/// Adds failures to those that are noted already. Entries in the order of their keys, so that two processes that write
/// the same rows wait for each other in the same order.
pub async fn add(tx: &mut Tx, entries: &[AuditEntry]) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO key_audit (key_id, minute_ms, code, ip, route, request_id, first_at_ms, last_at_ms, failures)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (key_id, minute_ms, code, ip) DO UPDATE SET failures = key_audit.failures + excluded.failures,
        last_at_ms = CASE WHEN excluded.last_at_ms > key_audit.last_at_ms THEN excluded.last_at_ms
        ELSE key_audit.last_at_ms END";
    let rows: Vec<Vec<Value<'_>>> = entries.iter().map(values).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

fn values(entry: &AuditEntry) -> Vec<Value<'_>> {
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

/// A key's failures, newest minute first.
pub async fn list(tx: &mut Tx, key_id: KeyId, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
    const SQL: &str =
        "SELECT key_id, minute_ms, code, ip, route, request_id, first_at_ms, last_at_ms, failures FROM key_audit
        WHERE key_id = $1 ORDER BY minute_ms DESC, code, ip LIMIT $2";
    tx.list(SQL, &params![key_id, limit], from_row).await
}

/// Forgets what happened before `before`; how many rows.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM key_audit WHERE (key_id, minute_ms, code, ip) IN
        (SELECT key_id, minute_ms, code, ip FROM key_audit WHERE minute_ms < $1 ORDER BY minute_ms LIMIT $2)";
    tx.exec(SQL, &params![before, limit]).await
}
