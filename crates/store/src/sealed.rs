//! The secrets of keys as they are stored, for sealing them again under another key.

use domain::ids::KeyId;

use crate::{StoreError, Tx, params};

/// Where sealed secrets stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The webhook secret of each key.
    WebhookSecret,
    /// The one before it, which still signs for a while after a rotation.
    PreviousWebhookSecret,
}

impl Column {
    /// Every column. A rotation moves a text from one column into the next, so that who reads them in this order meets it.
    pub const ALL: [Self; 2] = [Self::WebhookSecret, Self::PreviousWebhookSecret];
}

/// A sealed secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Whose it is.
    pub key_id: KeyId,
    /// Its text, which begins with the name of the key that sealed it.
    pub text: String,
}

/// The secrets that do not begin with `prefix`, by their keys' ids, behind `after`.
pub async fn list_not_under(
    tx: &mut Tx,
    column: Column,
    prefix: &str,
    after: Option<KeyId>,
    limit: u32,
) -> Result<Vec<Sealed>, StoreError> {
    const WEBHOOK_SECRET: &str = "SELECT id, webhook_secret_sealed FROM keys
        WHERE substr(webhook_secret_sealed, 1, length($1)) <> $1 AND id > $2 ORDER BY id LIMIT $3";
    const PREVIOUS: &str = "SELECT id, previous_webhook_secret_sealed FROM keys
        WHERE substr(previous_webhook_secret_sealed, 1, length($1)) <> $1 AND id > $2 ORDER BY id LIMIT $3";
    let sql = match column {
        Column::WebhookSecret => WEBHOOK_SECRET,
        Column::PreviousWebhookSecret => PREVIOUS,
    };
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let sealed = |row: &crate::Row<'_>| Ok(Sealed { key_id: row.parse(0)?, text: row.text(1)? });
    tx.list(sql, &params![prefix, after, limit], sealed).await
}

/// Replaces a secret where it is still the one that was read; whether it was.
pub async fn replace(tx: &mut Tx, column: Column, read: &Sealed, new: &str) -> Result<bool, StoreError> {
    const WEBHOOK_SECRET: &str =
        "UPDATE keys SET webhook_secret_sealed = $1 WHERE id = $2 AND webhook_secret_sealed = $3";
    const PREVIOUS: &str = "UPDATE keys SET previous_webhook_secret_sealed = $1
        WHERE id = $2 AND previous_webhook_secret_sealed = $3";
    let sql = match column {
        Column::WebhookSecret => WEBHOOK_SECRET,
        Column::PreviousWebhookSecret => PREVIOUS,
    };
    Ok(tx.exec(sql, &params![new, read.key_id, read.text.as_str()]).await? == 1)
}
