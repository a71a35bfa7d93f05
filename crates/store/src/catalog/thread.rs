//! Threads: collections of markets with a time window.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use serde::Serialize;

use crate::record::{Insert, Record, record};
use crate::search::{self, Texts};
use crate::{StoreError, Tx, params};

record! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Thread: Insert {
        pub id: ThreadId,
        pub organization_id: Option<OrganizationId>,
        pub partner_id: Option<PartnerId>,
        pub title: String,
        /// Markdown.
        pub description: Option<String>,
        /// The cover image's URL.
        pub image: Option<String>,
        /// The background image's URL.
        pub background_image: Option<String>,
        /// A category such as `sports`.
        pub category: Option<String>,
        /// Free-form tags.
        pub tags: Vec<String>,
        /// The start of the time window. `None` means that it has started.
        pub start_time: Option<Timestamp> = "start_time_ms",
        /// The end of the time window. `None` means that it never ends.
        pub end_time: Option<Timestamp> = "end_time_ms",
    }
}

pub async fn insert_thread(tx: &mut Tx, t: &Thread, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO threads (",
        Thread::COLUMNS,
        ", created_at_ms, updated_at_ms) VALUES (",
        Thread::PLACEHOLDERS,
        ", $12, $12)"
    );
    let mut bound = t.values()?;
    bound.push(now.into());
    tx.exec(SQL, &bound).await?;
    put_words(tx, t).await
}

pub async fn find_thread(tx: &mut Tx, id: ThreadId) -> Result<Option<Thread>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Thread::COLUMNS, " FROM threads WHERE id = $1");
    tx.find(SQL, &params![id], Thread::from_row).await
}

/// Lists threads, newest first, starting after the id `after`; only those of `organization_id` if
/// given.
pub async fn list_threads(
    tx: &mut Tx,
    organization_id: Option<OrganizationId>,
    after: Option<ThreadId>,
    limit: u32,
) -> Result<Vec<Thread>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Thread::COLUMNS,
        " FROM threads WHERE ($1 = '' OR organization_id = $1) AND ($2 = '' OR id < $2)
        ORDER BY id DESC LIMIT $3"
    );
    let organization_id = organization_id.map(|id| id.to_string()).unwrap_or_default();
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![organization_id, after, limit], Thread::from_row).await
}

/// Returns the ids and titles of all threads that have not ended at `now`.
pub async fn open_titles(tx: &mut Tx, now: Timestamp) -> Result<Vec<(ThreadId, String)>, StoreError> {
    const SQL: &str =
        "SELECT id, title FROM threads WHERE end_time_ms IS NULL OR end_time_ms > $1 ORDER BY id";
    tx.list(SQL, &params![now], |row| Ok((row.get("id")?, row.get("title")?))).await
}

/// Locks and returns the row, and sets its update time to `now`.
pub async fn lock_thread(tx: &mut Tx, id: ThreadId, now: Timestamp) -> Result<Option<Thread>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE threads SET updated_at_ms = $1 WHERE id = $2 RETURNING ",
        Thread::COLUMNS
    );
    crate::traders::lock(tx).await?;
    tx.find(SQL, &params![now, id], Thread::from_row).await
}

/// Locks and returns the row without changing it. A market copies its owners from the thread under
/// this lock, so that a concurrent change of the thread's owners does not miss the market.
pub async fn hold_thread(tx: &mut Tx, id: ThreadId) -> Result<Option<Thread>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("UPDATE threads SET title = title WHERE id = $1 RETURNING ", Thread::COLUMNS);
    tx.find(SQL, &params![id], Thread::from_row).await
}

/// Updates a locked row. The thread's markets get the same organization and partner.
pub async fn put_thread(tx: &mut Tx, t: &Thread) -> Result<(), StoreError> {
    const THREAD: &str =
        "UPDATE threads SET organization_id = $1, partner_id = $2, title = $3, description = $4,
        image = $5, background_image = $6, category = $7, tags = $8, start_time_ms = $9, end_time_ms = $10
        WHERE id = $11";
    const MARKETS: &str = "UPDATE markets SET organization_id = $1, partner_id = $2 WHERE thread_id = $3";
    let tags = serde_json::to_string(&t.tags).map_err(|error| StoreError::unwritable(&error))?;
    let bound = params![
        t.organization_id,
        t.partner_id,
        &t.title,
        t.description.as_deref(),
        t.image.as_deref(),
        t.background_image.as_deref(),
        t.category.as_deref(),
        tags,
        t.start_time,
        t.end_time,
        t.id
    ];
    // The markets' public data depends on their thread.
    tx.mark_markets_changed();
    tx.exec(THREAD, &bound).await?;
    tx.exec(MARKETS, &params![t.organization_id, t.partner_id, t.id]).await?;
    // After the markets, because it reads their rows.
    crate::listed::refresh_thread(tx, t.id).await?;
    put_words(tx, t).await
}

/// Updates the search index of a thread.
pub async fn put_words(tx: &mut Tx, t: &Thread) -> Result<(), StoreError> {
    let texts = Texts { title: t.title.clone(), tags: t.tags.clone(), category: t.category.clone() };
    search::put(tx, search::SearchKind::Thread, &t.id.to_string(), &texts).await
}
