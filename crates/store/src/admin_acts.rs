//! Acts of admins in the web application, from their preparation until they end.

use domain::Timestamp;
use domain::ids::{AdminActId, UserId};
use domain::passkey::Challenge;

use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// An act of an admin.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AdminAct: Insert {
        pub id: AdminActId,
        /// The admin.
        pub user_id: UserId,
        /// The act and its fields, as JSON.
        pub request: String,
        /// The words that the admin confirms, as JSON.
        pub summary: String,
        /// Random bytes in hex.
        pub nonce: String,
        /// The challenge that contains the hash of all fields above.
        pub challenge: Challenge,
        /// The passkey's assertion over the challenge, as JSON.
        pub assertion: Option<String>,
        pub confirmed_at: Option<Timestamp> = "confirmed_at_ms",
        /// The result, as JSON. `None` until the act has ended.
        pub outcome: Option<String>,
        pub ended_at: Option<Timestamp> = "ended_at_ms",
        pub created_at: Timestamp = "created_at_ms",
    }
}

pub async fn insert(tx: &mut Tx, act: &AdminAct) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO admin_acts (",
        AdminAct::COLUMNS,
        ") VALUES (",
        AdminAct::PLACEHOLDERS,
        ")"
    );
    tx.exec(SQL, &act.values()?).await.map(drop)
}

/// Returns an act of this admin.
pub async fn find(tx: &mut Tx, user_id: UserId, id: AdminActId) -> Result<Option<AdminAct>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        AdminAct::COLUMNS,
        " FROM admin_acts WHERE user_id = $1 AND id = $2"
    );
    tx.find(SQL, &params![user_id, id], AdminAct::from_row).await
}

/// Stores the passkey's assertion. Returns false if the act was confirmed before.
pub async fn confirm(
    tx: &mut Tx,
    id: AdminActId,
    assertion: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE admin_acts SET assertion = $1, confirmed_at_ms = $2
        WHERE id = $3 AND confirmed_at_ms IS NULL";
    Ok(tx.exec(SQL, &params![assertion, now, id]).await? == 1)
}

/// Stores the result of a confirmed act.
pub async fn end(tx: &mut Tx, id: AdminActId, outcome: &str, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE admin_acts SET outcome = $1, ended_at_ms = $2 WHERE id = $3";
    tx.exec(SQL, &params![outcome, now, id]).await.map(drop)
}

/// Deletes at most `limit` acts that were prepared before `before` and never confirmed. Returns
/// their number.
pub async fn delete_unconfirmed(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM admin_acts WHERE id IN (SELECT id FROM admin_acts
        WHERE confirmed_at_ms IS NULL AND created_at_ms < $1 ORDER BY created_at_ms LIMIT $2)";
    tx.exec(SQL, &params![before, limit]).await
}
