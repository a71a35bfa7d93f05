//! Chapters: the parts of a thread.

use domain::ids::ThreadId;
use serde::Serialize;

use crate::{Row, StoreError, Tx, params};

/// A chapter of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chapter {
    /// Its id.
    pub id: String,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its title.
    pub title: String,
    /// Its place in the thread, from zero.
    pub position: u32,
}

pub(crate) const COLUMNS: &str = "id, thread_id, title, position";

pub(crate) fn from_row(row: &Row<'_>) -> Result<Chapter, StoreError> {
    Ok(Chapter { id: row.text(0)?, thread_id: row.parse(1)?, title: row.text(2)?, position: row.number(3)? })
}

/// Adds a chapter.
pub async fn insert_chapter(tx: &mut Tx, c: &Chapter) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO chapters (id, thread_id, title, position) VALUES ($1, $2, $3, $4)";
    tx.exec(SQL, &params![&c.id, c.thread_id, &c.title, c.position]).await.map(drop)
}

/// The chapter with this id.
pub async fn find_chapter(tx: &mut Tx, id: &str) -> Result<Option<Chapter>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM chapters WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// A thread's chapters in their order.
pub async fn list_chapters(tx: &mut Tx, thread_id: ThreadId) -> Result<Vec<Chapter>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM chapters WHERE thread_id = $1 ORDER BY position, id LIMIT 1000"
    );
    tx.list(SQL, &params![thread_id], from_row).await
}

/// The place behind a thread's last chapter.
pub async fn next_position(tx: &mut Tx, thread_id: ThreadId) -> Result<u32, StoreError> {
    const SQL: &str = "SELECT COALESCE(MAX(position) + 1, 0) FROM chapters WHERE thread_id = $1";
    Ok(tx.find(SQL, &params![thread_id], |row| row.number(0)).await?.unwrap_or(0))
}

/// Takes the row for a change and tells what it holds.
pub async fn lock_chapter(tx: &mut Tx, id: &str) -> Result<Option<Chapter>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("UPDATE chapters SET position = position WHERE id = $1 RETURNING ", COLUMNS);
    tx.find(SQL, &params![id], from_row).await
}

/// Writes a row that was taken back. A chapter stays with its thread.
pub async fn put_chapter(tx: &mut Tx, c: &Chapter) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE chapters SET title = $1, position = $2 WHERE id = $3";
    tx.exec(SQL, &params![&c.title, c.position, &c.id]).await.map(drop)
}
