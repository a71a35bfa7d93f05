//! The sealed secrets that sign deliveries.

use domain::Timestamp;
use domain::ids::KeyId;

use crate::engine::Columns;
use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// A key's sealed secrets.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Secrets {
        /// The current secret.
        pub current: String = "webhook_secret_sealed",
        /// The previous secret, and the end of its validity.
        pub previous: Option<(String, Timestamp)> = ..,
        /// The time of the last rotation.
        pub rotated_at: Option<Timestamp> = "webhook_secret_rotated_at_ms",
    }
}

impl Record for Option<(String, Timestamp)> {
    const COLUMNS: &'static str = "previous_webhook_secret_sealed, previous_webhook_secret_until_ms";

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let secret: Option<String> = columns.next("previous_webhook_secret_sealed")?;
        Ok(secret.zip(columns.next("previous_webhook_secret_until_ms")?))
    }
}

pub async fn find_secrets(tx: &mut Tx, key_id: KeyId) -> Result<Option<Secrets>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Secrets::COLUMNS, " FROM keys WHERE id = $1");
    tx.find(SQL, &params![key_id], Secrets::from_row).await
}

/// Locks a key's row until the transaction ends and returns its secrets.
pub async fn lock_secrets(tx: &mut Tx, key_id: KeyId) -> Result<Option<Secrets>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE keys SET webhook_secret_sealed = webhook_secret_sealed WHERE id = $1 RETURNING ",
        Secrets::COLUMNS
    );
    tx.find(SQL, &params![key_id], Secrets::from_row).await
}

/// Replaces the current secret. The old one remains valid for signatures until `until`.
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
