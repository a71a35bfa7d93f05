//! Imports from the operator's catalog files: the row that was created for each item, and digests
//! of the item's content.

use domain::Timestamp;

use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// The record of one imported item.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Import: Insert {
        /// The kind of item, such as `thread`.
        pub kind: String,
        /// The author's key for the item, unique within its kind.
        pub key: String = "import_key",
        /// The id of the row that was created for the item.
        pub row_id: String,
        /// A digest of the item's terms, which must never change.
        pub terms_hash: String,
        /// A digest of the item's whole content.
        pub content_hash: String,
    }
}

pub async fn find(tx: &mut Tx, kind: &str, key: &str) -> Result<Option<Import>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Import::COLUMNS,
        " FROM imports WHERE kind = $1 AND import_key = $2"
    );
    tx.find(SQL, &params![kind, key], Import::from_row).await
}

/// Stores a new item. Returns `Conflict` if another run has just created it.
pub async fn insert(tx: &mut Tx, import: &Import, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO imports (",
        Import::COLUMNS,
        ", created_at_ms, updated_at_ms) VALUES (",
        Import::PLACEHOLDERS,
        ", $6, $6)"
    );
    let mut bound = import.values()?;
    bound.push(now.into());
    tx.exec(SQL, &bound).await.map(drop)
}

/// Updates the content digest of an item.
pub async fn put_content(tx: &mut Tx, import: &Import, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE imports SET content_hash = $1, updated_at_ms = $2 WHERE kind = $3 AND import_key = $4";
    tx.exec(SQL, &params![&import.content_hash, now, &import.kind, &import.key]).await.map(drop)
}
