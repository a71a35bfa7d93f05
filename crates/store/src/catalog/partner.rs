//! Partners: each sits under an organization.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId};
use serde::Serialize;

use crate::{Row, StoreError, Tx, params};

/// A partner of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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

impl Partner {
    /// The word of the APIs and of the store.
    pub const fn status(&self) -> &'static str {
        if self.active { ACTIVE } else { "inactive" }
    }
}

const ACTIVE: &str = "active";
pub(crate) const COLUMNS: &str = "id, organization_id, name, slug, description, logo, website, status";

pub(crate) fn from_row(row: &Row<'_>) -> Result<Partner, StoreError> {
    Ok(Partner {
        id: row.parse(0)?,
        organization_id: row.parse(1)?,
        name: row.text(2)?,
        slug: row.text(3)?,
        description: row.opt_text(4)?,
        logo: row.opt_text(5)?,
        website: row.opt_text(6)?,
        active: row.str(7)? == ACTIVE,
    })
}

/// Adds a partner.
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

/// The partner with this id.
pub async fn find_partner(tx: &mut Tx, id: PartnerId) -> Result<Option<Partner>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM partners WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// Which partner has this slug.
pub async fn partner_with_slug(tx: &mut Tx, slug: &str) -> Result<Option<PartnerId>, StoreError> {
    const SQL: &str = "SELECT id FROM partners WHERE slug = $1";
    tx.find(SQL, &params![slug], |row| row.parse(0)).await
}

/// Partners, of one organization where that is given, the newest first, behind the one with id `after`.
pub async fn list_partners(
    tx: &mut Tx,
    organization_id: Option<OrganizationId>,
    after: Option<PartnerId>,
    limit: u32,
) -> Result<Vec<Partner>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM partners WHERE ($1 = '' OR organization_id = $1) AND ($2 = '' OR id < $2)
        ORDER BY id DESC LIMIT $3"
    );
    let organization_id = organization_id.map(|id| id.to_string()).unwrap_or_default();
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![organization_id, after, limit], from_row).await
}

/// Takes the row for a change at `now` and tells what it holds.
pub async fn lock_partner(tx: &mut Tx, id: PartnerId, now: Timestamp) -> Result<Option<Partner>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("UPDATE partners SET updated_at_ms = $1 WHERE id = $2 RETURNING ", COLUMNS);
    tx.find(SQL, &params![now, id], from_row).await
}

/// Writes a row that was taken back. A partner stays with its organization.
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
