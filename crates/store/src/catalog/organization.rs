//! Organizations: they own threads.

use domain::Timestamp;
use domain::ids::OrganizationId;
use serde::Serialize;

use crate::{Row, StoreError, Tx, params};

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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

const COLUMNS: &str = "id, name, slug, description, logo, website";

fn from_row(row: &Row<'_>) -> Result<Organization, StoreError> {
    Ok(Organization {
        id: row.parse(0)?,
        name: row.text(1)?,
        slug: row.text(2)?,
        description: row.opt_text(3)?,
        logo: row.opt_text(4)?,
        website: row.opt_text(5)?,
    })
}

/// Adds an organization.
pub async fn insert_organization(tx: &mut Tx, o: &Organization, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO organizations (id, name, slug, description, logo, website, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
    let bound = params![
        o.id,
        &o.name,
        &o.slug,
        o.description.as_deref(),
        o.logo.as_deref(),
        o.website.as_deref(),
        now
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

/// The organization with this id.
pub async fn find_organization(tx: &mut Tx, id: OrganizationId) -> Result<Option<Organization>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM organizations WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// Which organization has this slug.
pub async fn organization_with_slug(tx: &mut Tx, slug: &str) -> Result<Option<OrganizationId>, StoreError> {
    const SQL: &str = "SELECT id FROM organizations WHERE slug = $1";
    tx.find(SQL, &params![slug], |row| row.parse(0)).await
}

/// Organizations, the newest first, behind the one with id `after`.
pub async fn list_organizations(
    tx: &mut Tx,
    after: Option<OrganizationId>,
    limit: u32,
) -> Result<Vec<Organization>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM organizations WHERE ($1 = '' OR id < $1) ORDER BY id DESC LIMIT $2"
    );
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], from_row).await
}

/// Takes the row for a change at `now` and tells what it holds.
pub async fn lock_organization(
    tx: &mut Tx,
    id: OrganizationId,
    now: Timestamp,
) -> Result<Option<Organization>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE organizations SET updated_at_ms = $1 WHERE id = $2 RETURNING ",
        COLUMNS
    );
    tx.find(SQL, &params![now, id], from_row).await
}

/// Writes a row that was taken back.
pub async fn put_organization(tx: &mut Tx, o: &Organization) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE organizations SET name = $1, slug = $2, description = $3, logo = $4, website = $5
        WHERE id = $6";
    let bound =
        params![&o.name, &o.slug, o.description.as_deref(), o.logo.as_deref(), o.website.as_deref(), o.id];
    tx.exec(SQL, &bound).await.map(drop)
}
