//! Threads: collections of markets with a time window.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use serde::Serialize;

use crate::search::{self, Texts};
use crate::{Row, StoreError, Tx, params};

/// A thread of markets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Its id.
    pub id: ThreadId,
    /// The organization it belongs to.
    pub organization_id: Option<OrganizationId>,
    /// The partner it belongs to.
    pub partner_id: Option<PartnerId>,
    /// Its title.
    pub title: String,
    /// Markdown.
    pub description: Option<String>,
    /// A cover's URL.
    pub image: Option<String>,
    /// A background's URL.
    pub background_image: Option<String>,
    /// Such as `sports`.
    pub category: Option<String>,
    /// Free words.
    pub tags: Vec<String>,
    /// When it starts; already started where absent.
    pub start_time: Option<Timestamp>,
    /// When it ends; never where absent.
    pub end_time: Option<Timestamp>,
}

const COLUMNS: &str =
    "id, organization_id, partner_id, title, description, image, background_image, category, tags,
    start_time_ms, end_time_ms";

fn from_row(row: &Row<'_>) -> Result<Thread, StoreError> {
    Ok(Thread {
        id: row.parse(0)?,
        organization_id: row.opt_parse(1)?,
        partner_id: row.opt_parse(2)?,
        title: row.text(3)?,
        description: row.opt_text(4)?,
        image: row.opt_text(5)?,
        background_image: row.opt_text(6)?,
        category: row.opt_text(7)?,
        tags: row.texts(8)?,
        start_time: row.opt_timestamp(9)?,
        end_time: row.opt_timestamp(10)?,
    })
}

/// Adds a thread.
pub async fn insert_thread(tx: &mut Tx, t: &Thread, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO threads (id, organization_id, partner_id, title, description, image, background_image,
        category, tags, start_time_ms, end_time_ms, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)";
    let tags = serde_json::to_string(&t.tags).map_err(|error| StoreError::unwritable(&error))?;
    let bound = params![
        t.id,
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
        now
    ];
    tx.exec(SQL, &bound).await?;
    put_words(tx, t).await
}

/// The thread with this id.
pub async fn find_thread(tx: &mut Tx, id: ThreadId) -> Result<Option<Thread>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM threads WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// Threads, of one organization where that is given, the newest first, behind the one with id `after`.
pub async fn list_threads(
    tx: &mut Tx,
    organization_id: Option<OrganizationId>,
    after: Option<ThreadId>,
    limit: u32,
) -> Result<Vec<Thread>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM threads WHERE ($1 = '' OR organization_id = $1) AND ($2 = '' OR id < $2)
        ORDER BY id DESC LIMIT $3"
    );
    let organization_id = organization_id.map(|id| id.to_string()).unwrap_or_default();
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![organization_id, after, limit], from_row).await
}

/// Takes the row for a change at `now` and tells what it holds.
pub async fn lock_thread(tx: &mut Tx, id: ThreadId, now: Timestamp) -> Result<Option<Thread>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("UPDATE threads SET updated_at_ms = $1 WHERE id = $2 RETURNING ", COLUMNS);
    crate::traders::lock(tx).await?;
    tx.find(SQL, &params![now, id], from_row).await
}

/// Keeps a thread from being changed by others before this transaction ends, and tells what it holds.
pub async fn hold_thread(tx: &mut Tx, id: ThreadId) -> Result<Option<Thread>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("UPDATE threads SET title = title WHERE id = $1 RETURNING ", COLUMNS);
    tx.find(SQL, &params![id], from_row).await
}

/// Writes a row that was taken back. Its markets follow it to its organization and its partner.
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
    tx.mark_markets_changed();
    tx.exec(THREAD, &bound).await?;
    tx.exec(MARKETS, &params![t.organization_id, t.partner_id, t.id]).await?;
    crate::listed::refresh_thread(tx, t.id).await?;
    put_words(tx, t).await
}

/// Writes the words that a thread is found by.
pub async fn put_words(tx: &mut Tx, t: &Thread) -> Result<(), StoreError> {
    let texts = Texts { title: t.title.clone(), tags: t.tags.clone(), category: t.category.clone() };
    search::put(tx, search::Kind::Thread, &t.id.to_string(), &texts).await
}
