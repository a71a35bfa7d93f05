//! Chapters: the sections of a thread.

use domain::ids::ThreadId;
use serde::Serialize;

use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

record! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Chapter: Insert {
        pub id: String,
        pub thread_id: ThreadId,
        pub title: String,
        /// The position in the thread, from 0.
        pub position: u32,
    }
}

pub async fn insert_chapter(tx: &mut Tx, c: &Chapter) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO chapters (",
        Chapter::COLUMNS,
        ") VALUES (",
        Chapter::PLACEHOLDERS,
        ")"
    );
    tx.exec(SQL, &c.values()?).await.map(drop)
}

pub async fn find_chapter(tx: &mut Tx, id: &str) -> Result<Option<Chapter>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Chapter::COLUMNS, " FROM chapters WHERE id = $1");
    tx.find(SQL, &params![id], Chapter::from_row).await
}

/// Lists a thread's chapters in order.
pub async fn list_chapters(tx: &mut Tx, thread_id: ThreadId) -> Result<Vec<Chapter>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Chapter::COLUMNS,
        " FROM chapters WHERE thread_id = $1 ORDER BY position, id LIMIT 1000"
    );
    tx.list(SQL, &params![thread_id], Chapter::from_row).await
}

/// Returns the position after a thread's last chapter.
pub async fn next_position(tx: &mut Tx, thread_id: ThreadId) -> Result<u32, StoreError> {
    const SQL: &str =
        "SELECT COALESCE(MAX(position) + 1, 0) AS next_position FROM chapters WHERE thread_id = $1";
    Ok(tx.find(SQL, &params![thread_id], |row| row.only()).await?.unwrap_or(0))
}

/// Locks and returns the row.
pub async fn lock_chapter(tx: &mut Tx, id: &str) -> Result<Option<Chapter>, StoreError> {
    // The no-op UPDATE locks the row. SQLite has no `SELECT ... FOR UPDATE`.
    const SQL: &str = const_format::concatcp!(
        "UPDATE chapters SET position = position WHERE id = $1 RETURNING ",
        Chapter::COLUMNS
    );
    tx.find(SQL, &params![id], Chapter::from_row).await
}

/// Updates a locked row. A chapter cannot move to another thread.
pub async fn put_chapter(tx: &mut Tx, c: &Chapter) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE chapters SET title = $1, position = $2 WHERE id = $3";
    tx.exec(SQL, &params![&c.title, c.position, &c.id]).await.map(drop)
}
