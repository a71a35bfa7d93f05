//! Partners, each of which belongs to an organization.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId};
use serde::Serialize;

use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

record! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Partner {
        pub id: PartnerId,
        pub organization_id: OrganizationId,
        pub name: String,
        /// The name used in URLs; unique.
        pub slug: String,
        /// Markdown.
        pub description: Option<String>,
        /// A URL of an image.
        pub logo: Option<String>,
        /// A URL.
        pub website: Option<String>,
        pub active: bool = "(status = 'active') AS active",
    }
}

impl Partner {
    /// The status as the APIs and the database spell it.
    pub const fn status(&self) -> &'static str {
        if self.active { "active" } else { "inactive" }
    }
}

pub async fn insert_partner(tx: &mut Tx, p: &Partner, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO partners (id, organization_id, name, slug, description, logo, website, status,
        created_at_ms, updated_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)";
    let bound = params![
        p.id,
        p.organization_id,
        &p.name,
        &p.slug,
        p.description.as_deref(),
        p.logo.as_deref(),
        p.website.as_deref(),
        p.status(),
        now
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

pub async fn find_partner(tx: &mut Tx, id: PartnerId) -> Result<Option<Partner>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Partner::COLUMNS, " FROM partners WHERE id = $1");
    tx.find(SQL, &params![id], Partner::from_row).await
}

/// Returns the id of the partner with this slug.
pub async fn partner_with_slug(tx: &mut Tx, slug: &str) -> Result<Option<PartnerId>, StoreError> {
    const SQL: &str = "SELECT id FROM partners WHERE slug = $1";
    tx.find(SQL, &params![slug], |row| row.only()).await
}

/// Lists partners, newest first, starting after the id `after`; only those of `organization_id` if
/// given.
pub async fn list_partners(
    tx: &mut Tx,
    organization_id: Option<OrganizationId>,
    after: Option<PartnerId>,
    limit: u32,
) -> Result<Vec<Partner>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Partner::COLUMNS,
        " FROM partners WHERE ($1 = '' OR organization_id = $1) AND ($2 = '' OR id < $2)
        ORDER BY id DESC LIMIT $3"
    );
    let organization_id = organization_id.map(|id| id.to_string()).unwrap_or_default();
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![organization_id, after, limit], Partner::from_row).await
}

/// Locks and returns the row, and sets its update time to `now`.
pub async fn lock_partner(tx: &mut Tx, id: PartnerId, now: Timestamp) -> Result<Option<Partner>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE partners SET updated_at_ms = $1 WHERE id = $2 RETURNING ",
        Partner::COLUMNS
    );
    tx.find(SQL, &params![now, id], Partner::from_row).await
}

/// Updates a locked row. A partner cannot move to another organization.
pub async fn put_partner(tx: &mut Tx, p: &Partner) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE partners SET name = $1, slug = $2, description = $3, logo = $4, website = $5, status = $6
        WHERE id = $7";
    let bound = params![
        &p.name,
        &p.slug,
        p.description.as_deref(),
        p.logo.as_deref(),
        p.website.as_deref(),
        p.status(),
        p.id
    ];
    tx.exec(SQL, &bound).await.map(drop)
}
