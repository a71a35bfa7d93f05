//! The secrets that sign deliveries, sealed.

use domain::Timestamp;
use domain::ids::KeyId;

use crate::{Row, StoreError, Tx, params};

/// A key's secrets, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    /// The one that signs.
    pub current: String,
    /// The one before it, and until when it signs too.
    pub previous: Option<(String, Timestamp)>,
    /// When the current one took its place.
    pub rotated_at: Option<Timestamp>,
}

const COLUMNS: &str =
    "webhook_secret_sealed, previous_webhook_secret_sealed, previous_webhook_secret_until_ms,
    webhook_secret_rotated_at_ms";

fn from_row(row: &Row<'_>) -> Result<Secrets, StoreError> {
    Ok(Secrets {
        current: row.text(0)?,
        previous: row.opt_text(1)?.zip(row.opt_timestamp(2)?),
        rotated_at: row.opt_timestamp(3)?,
    })
}

/// A key's secrets.
pub async fn find_secrets(tx: &mut Tx, key_id: KeyId) -> Result<Option<Secrets>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM keys WHERE id = $1");
    tx.find(SQL, &params![key_id], from_row).await
}

/// A key's secrets. The row stays locked until the transaction ends.
pub async fn lock_secrets(tx: &mut Tx, key_id: KeyId) -> Result<Option<Secrets>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE keys SET webhook_secret_sealed = webhook_secret_sealed WHERE id = $1 RETURNING ",
        COLUMNS
    );
    tx.find(SQL, &params![key_id], from_row).await
}

/// Puts a new secret in the place of the current one, which signs beside it until `until`.
pub async fn rotate(
    tx: &mut Tx,
    key_id: KeyId,
    sealed: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE keys SET previous_webhook_secret_sealed = webhook_secret_sealed,
        previous_webhook_secret_until_ms = $1, webhook_secret_sealed = $2, webhook_secret_rotated_at_ms = $3
        WHERE id = $4";
    if tx.exec(SQL, &params![until, sealed, now, key_id]).await? == 1 {
        Ok(())
    } else {
        Err(StoreError::missing("keys"))
    }
}
