//! What markets are arranged under: organizations, partners, threads and chapters.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};

use crate::{StoreError, Tx, params};

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// Its name in addresses; unique.
    pub slug: String,
    /// Markdown.
    pub description: Option<String>,
    /// An image's URL.
    pub logo: Option<String>,
    /// A URL.
    pub website: Option<String>,
}

/// A partner of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partner {
    /// Its id.
    pub id: PartnerId,
    /// The organization it sits under.
    pub organization_id: OrganizationId,
    /// Its name.
    pub name: String,
    /// Its name in addresses; unique.
    pub slug: String,
    /// Markdown.
    pub description: Option<String>,
    /// An image's URL.
    pub logo: Option<String>,
    /// A URL.
    pub website: Option<String>,
    /// Whether it is shown as active.
    pub active: bool,
}

/// A thread of markets.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// A chapter of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Adds an organization.
pub async fn insert_organization(tx: &mut Tx, o: &Organization, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO organizations (id, name, slug, description, logo, website, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
    let bound =
        params![o.id, &o.name, &o.slug, o.description.as_deref(), o.logo.as_deref(), o.website.as_deref(), now];
    tx.exec(SQL, &bound).await.map(drop)
}

/// Adds a partner.
pub async fn insert_partner(tx: &mut Tx, p: &Partner, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO partners (id, organization_id, name, slug, description, logo, website, status,
        created_at_ms, updated_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)";
    let status = if p.active { "active" } else { "inactive" };
    let bound = params![
        p.id,
        p.organization_id,
        &p.name,
        &p.slug,
        p.description.as_deref(),
        p.logo.as_deref(),
        p.website.as_deref(),
        status,
        now
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

/// Adds a thread.
pub async fn insert_thread(tx: &mut Tx, t: &Thread, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO threads (id, organization_id, partner_id, title, description, image, background_image,
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
    tx.exec(SQL, &bound).await.map(drop)
}

/// The thread with this id.
pub async fn find_thread(tx: &mut Tx, id: ThreadId) -> Result<Option<Thread>, StoreError> {
    const SQL: &str = "SELECT id, organization_id, partner_id, title, description, image, background_image, category, tags,
        start_time_ms, end_time_ms FROM threads WHERE id = $1";
    tx.find(SQL, &params![id], |row| {
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
    })
    .await
}

/// Adds a chapter.
pub async fn insert_chapter(tx: &mut Tx, c: &Chapter) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO chapters (id, thread_id, title, position) VALUES ($1, $2, $3, $4)";
    tx.exec(SQL, &params![&c.id, c.thread_id, &c.title, c.position]).await.map(drop)
}
