//! Access to sealed webhook secrets, used to reseal them under a new sealing key.

use domain::ids::KeyId;

use crate::{StoreError, Tx, params};

/// A column of sealed secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The key's current webhook secret.
    WebhookSecret,
    /// The secret before it, which still signs for a while after a rotation.
    PreviousWebhookSecret,
}

impl Column {
    /// All columns, in the order in which a resealing job must read them. A rotation moves a secret
    /// from the first column to the second, so this order does not miss a secret that is rotated
    /// meanwhile.
    pub const ALL: [Self; 2] = [Self::WebhookSecret, Self::PreviousWebhookSecret];
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub key_id: KeyId,
    /// The sealed text. It begins with the name of the sealing key.
    pub text: String,
}

/// Lists the secrets that do not begin with `prefix`, sorted by key id and starting after `after`.
pub async fn list_not_under(
    tx: &mut Tx,
    column: Column,
    prefix: &str,
    after: Option<KeyId>,
    limit: u32,
) -> Result<Vec<Sealed>, StoreError> {
    const WEBHOOK_SECRET: &str = "SELECT id, webhook_secret_sealed AS sealed FROM keys
        WHERE substr(webhook_secret_sealed, 1, length($1)) <> $1 AND id > $2 ORDER BY id LIMIT $3";
    const PREVIOUS: &str = "SELECT id, previous_webhook_secret_sealed AS sealed FROM keys
        WHERE substr(previous_webhook_secret_sealed, 1, length($1)) <> $1 AND id > $2 ORDER BY id LIMIT $3";
    let sql = match column {
        Column::WebhookSecret => WEBHOOK_SECRET,
        Column::PreviousWebhookSecret => PREVIOUS,
    };
    // The empty string sorts before every id.
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let sealed = |row: &crate::Row<'_>| Ok(Sealed { key_id: row.get("id")?, text: row.get("sealed")? });
    tx.list(sql, &params![prefix, after, limit], sealed).await
}

/// Replaces a secret if it is unchanged since it was read. Returns false if it was changed.
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
