//! Organizations, partners and chapters, with their totals.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};

use super::clauses::Clauses;
use super::threads::count_of;
use super::{Listed, PageRange};
use crate::catalog::{self, Chapter, Organization, Partner};
use crate::listed::{ScopeKind, Totals, find_totals};
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

/// An organization with its totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganizationRow {
    pub organization: Organization,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The number of its threads.
    pub threads: u64,
    /// The totals over its markets on chain.
    pub totals: Totals,
}

record! {
    /// A partner with its totals.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PartnerRow {
        pub partner: Partner = ..,
        pub created_at: Timestamp = "created_at_ms",
        pub updated_at: Timestamp = "updated_at_ms",
        /// The number of its threads.
        pub threads: u64 = "(SELECT COUNT(*) FROM threads WHERE threads.partner_id = partners.id) AS threads",
        /// The totals over its markets on chain.
        pub totals: Totals = ..,
    }
}

record! {
    /// A chapter with its totals.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChapterRow {
        pub chapter: Chapter = ..,
        /// The totals over its markets on chain.
        pub totals: Totals = ..,
        /// The number of its open markets.
        pub open_markets: u64 = "COALESCE(open_markets, 0) AS open_markets",
    }
}

/// A filter for lists of partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartnerFilter {
    pub organization_id: OrganizationId,
    /// Only active or only inactive partners; all if `None`.
    pub active: Option<bool>,
}

impl PartnerFilter {
    fn clauses(&self) -> Clauses {
        let mut clauses = Clauses::default();
        clauses.and("organization_id = ?", params![self.organization_id]);
        if let Some(active) = self.active {
            clauses.and("status = ?", params![if active { "active" } else { "inactive" }]);
        }
        clauses
    }
}

pub async fn get_organization(
    tx: &mut Tx,
    id: OrganizationId,
) -> Result<Option<OrganizationRow>, StoreError> {
    const TIMES: &str = "SELECT created_at_ms, updated_at_ms FROM organizations WHERE id = $1";
    let Some(organization) = catalog::find_organization(tx, id).await? else { return Ok(None) };
    let times = tx
        .find(TIMES, &params![id], |row| Ok((row.get("created_at_ms")?, row.get("updated_at_ms")?)))
        .await?;
    let (created_at, updated_at) = times.ok_or_else(|| StoreError::missing("organizations"))?;
    let threads = count_of(tx, Some(id), None).await?;
    let totals = find_totals(tx, ScopeKind::Organization, &id.to_string()).await?;
    Ok(Some(OrganizationRow { organization, created_at, updated_at, threads, totals }))
}

pub async fn get_partner(tx: &mut Tx, id: PartnerId) -> Result<Option<PartnerRow>, StoreError> {
    Ok(partners(tx, "SELECT id AS partner_id FROM partners WHERE id = $1", &params![id]).await?.pop())
}

/// Loads the partners of a page, newest first, with one statement. `page` is a query of their ids.
async fn partners(tx: &mut Tx, page: &str, bound: &[SqlValue<'_>]) -> Result<Vec<PartnerRow>, StoreError> {
    // SQLite never reorders a CROSS JOIN, so the page stays the outer loop.
    let sql = format!(
        "SELECT {} FROM ({page}) page CROSS JOIN partners LEFT JOIN totals ON scope = 'partner' AND scope_id = partners.id
        WHERE partners.id = page.partner_id ORDER BY created_at_ms DESC, partners.id DESC",
        PartnerRow::COLUMNS
    );
    tx.list_shaped(&sql, bound, PartnerRow::from_row).await
}

/// Lists an organization's partners, newest first.
pub async fn list_partners(
    tx: &mut Tx,
    filter: &PartnerFilter,
    extent: PageRange,
) -> Result<Listed<PartnerRow>, StoreError> {
    let mut clauses = filter.clauses();
    let conditions = clauses.sql().to_owned();
    let (limit, offset) = (clauses.bind(extent.limit.into()), clauses.bind(extent.offset.into()));
    let page = format!(
        "SELECT id AS partner_id FROM partners WHERE 1 = 1{conditions} ORDER BY created_at_ms DESC, id DESC LIMIT {limit} OFFSET {offset}"
    );
    let items = partners(tx, &page, &clauses.bound).await?;
    // A new builder, because this statement does not use the placeholders of the page.
    let all = filter.clauses();
    let sql = format!("SELECT COUNT(*) AS count FROM partners WHERE 1 = 1{}", all.sql());
    let counted = tx.list_shaped(&sql, &all.bound, |row| row.only()).await?;
    Ok(Listed { items, total: counted.first().copied().unwrap_or_default() })
}

/// Lists a thread's chapters in order, at most 1,000.
pub async fn list_chapters(tx: &mut Tx, thread_id: ThreadId) -> Result<Vec<ChapterRow>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        ChapterRow::COLUMNS,
        " FROM chapters c LEFT JOIN totals s ON s.scope = 'chapter' AND s.scope_id = c.id
        WHERE c.thread_id = $1 ORDER BY c.position, c.id LIMIT 1000"
    );
    tx.list(SQL, &params![thread_id], ChapterRow::from_row).await
}
