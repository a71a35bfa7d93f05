//! Organizations, which own threads.

use domain::Timestamp;
use domain::ids::OrganizationId;
use serde::Serialize;

use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

record! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Organization: Insert {
        pub id: OrganizationId,
        pub name: String,
        /// The name used in URLs; unique.
        pub slug: String,
        /// Markdown.
        pub description: Option<String>,
        /// A URL of an image.
        pub logo: Option<String>,
        /// A URL.
        pub website: Option<String>,
    }
}

pub async fn insert_organization(tx: &mut Tx, o: &Organization, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO organizations (",
        Organization::COLUMNS,
        ", created_at_ms, updated_at_ms) VALUES (",
        Organization::PLACEHOLDERS,
        ", $7, $7)"
    );
    let mut bound = o.values()?;
    bound.push(now.into());
    tx.exec(SQL, &bound).await.map(drop)
}

pub async fn find_organization(tx: &mut Tx, id: OrganizationId) -> Result<Option<Organization>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Organization::COLUMNS, " FROM organizations WHERE id = $1");
    tx.find(SQL, &params![id], Organization::from_row).await
}

/// Returns the id of the organization with this slug.
pub async fn organization_with_slug(tx: &mut Tx, slug: &str) -> Result<Option<OrganizationId>, StoreError> {
    const SQL: &str = "SELECT id FROM organizations WHERE slug = $1";
    tx.find(SQL, &params![slug], |row| row.only()).await
}

/// Lists organizations, newest first, starting after the id `after`.
pub async fn list_organizations(
    tx: &mut Tx,
    after: Option<OrganizationId>,
    limit: u32,
) -> Result<Vec<Organization>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Organization::COLUMNS,
        " FROM organizations WHERE ($1 = '' OR id < $1) ORDER BY id DESC LIMIT $2"
    );
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], Organization::from_row).await
}

/// Locks and returns the row, and sets its update time to `now`.
pub async fn lock_organization(
    tx: &mut Tx,
    id: OrganizationId,
    now: Timestamp,
) -> Result<Option<Organization>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE organizations SET updated_at_ms = $1 WHERE id = $2 RETURNING ",
        Organization::COLUMNS
    );
    tx.find(SQL, &params![now, id], Organization::from_row).await
}

/// Updates a locked row.
pub async fn put_organization(tx: &mut Tx, o: &Organization) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE organizations SET name = $1, slug = $2, description = $3, logo = $4, website = $5
        WHERE id = $6";
    let bound =
        params![&o.name, &o.slug, o.description.as_deref(), o.logo.as_deref(), o.website.as_deref(), o.id];
    tx.exec(SQL, &bound).await.map(drop)
}
