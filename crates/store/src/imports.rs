//! What was imported from the operator's files: which row an author's key stands for, and what was read for it.

use domain::Timestamp;

use crate::{Row, StoreError, Tx, params};

/// The memory of one imported item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// What it is, such as `thread`.
    pub kind: String,
    /// The author's key, unique within the kind.
    pub key: String,
    /// The id of the row that was made of it.
    pub row_id: String,
    /// A digest of what never changes of it.
    pub terms_hash: String,
    /// A digest of all that was read for it.
    pub content_hash: String,
}

fn from_row(row: &Row<'_>) -> Result<Import, StoreError> {
    Ok(Import {
        kind: row.text(0)?,
        key: row.text(1)?,
        row_id: row.text(2)?,
        terms_hash: row.text(3)?,
        content_hash: row.text(4)?,
    })
}

/// What is remembered under this key.
pub async fn find(tx: &mut Tx, kind: &str, key: &str) -> Result<Option<Import>, StoreError> {
    const SQL: &str = "SELECT kind, import_key, row_id, terms_hash, content_hash FROM imports
        WHERE kind = $1 AND import_key = $2";
    tx.find(SQL, &params![kind, key], from_row).await
}

/// Remembers a new item. A conflict where another run has just made it.
pub async fn insert(tx: &mut Tx, import: &Import, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO imports (kind, import_key, row_id, terms_hash, content_hash, created_at_ms,
        updated_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $6)";
    let Import { kind, key, row_id, terms_hash, content_hash } = import;
    tx.exec(SQL, &params![kind, key, row_id, terms_hash, content_hash, now]).await.map(drop)
}

/// Notes what was read for an item this time.
pub async fn put_content(tx: &mut Tx, import: &Import, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE imports SET content_hash = $1, updated_at_ms = $2 WHERE kind = $3 AND import_key = $4";
    tx.exec(SQL, &params![&import.content_hash, now, &import.kind, &import.key]).await.map(drop)
}
