//! What the operator has switched off.

use domain::Timestamp;

use crate::{Row, StoreError, Tx, params};

/// The most switches that are ever read: far more than there are routes.
const MOST: i64 = 1_000;

/// A switch's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillSwitch {
    /// What it switches off.
    pub name: String,
    /// Since when that is off; absent where it is on.
    pub thrown_at: Option<Timestamp>,
    /// When it was last thrown or put back.
    pub changed_at: Timestamp,
    /// Who did that.
    pub changed_by: String,
    /// Why.
    pub reason: Option<String>,
}

fn from_row(row: &Row<'_>) -> Result<KillSwitch, StoreError> {
    Ok(KillSwitch {
        name: row.text(0)?,
        thrown_at: row.opt_timestamp(1)?,
        changed_at: row.timestamp(2)?,
        changed_by: row.text(3)?,
        reason: row.opt_text(4)?,
    })
}

/// All switches that were ever thrown, by name.
pub async fn list(tx: &mut Tx) -> Result<Vec<KillSwitch>, StoreError> {
    const SQL: &str = "SELECT name, thrown_at_ms, changed_at_ms, changed_by, reason FROM kill_switches
        ORDER BY name LIMIT $1";
    tx.list(SQL, &params![MOST], from_row).await
}

/// Writes a switch over its former state. One that is thrown again stays thrown since the first time.
pub async fn set(tx: &mut Tx, switch: &KillSwitch) -> Result<KillSwitch, StoreError> {
    const SQL: &str =
        "INSERT INTO kill_switches (name, thrown_at_ms, changed_at_ms, changed_by, reason)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (name) DO UPDATE SET changed_at_ms = excluded.changed_at_ms, changed_by = excluded.changed_by,
        reason = excluded.reason, thrown_at_ms = CASE WHEN excluded.thrown_at_ms IS NULL THEN NULL
        ELSE COALESCE(kill_switches.thrown_at_ms, excluded.thrown_at_ms) END
        RETURNING name, thrown_at_ms, changed_at_ms, changed_by, reason";
    let KillSwitch { name, thrown_at, changed_at, changed_by, reason } = switch;
    let values = params![name, *thrown_at, *changed_at, changed_by, reason.as_deref()];
    tx.find(SQL, &values, from_row).await?.ok_or_else(|| StoreError::missing("kill_switches"))
}
