//! Organizations, partners and chapters with their sums.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};

use super::clauses::Clauses;
use super::threads::count_of;
use super::{Extent, Listed};
use crate::catalog::{self, Chapter, Organization, Partner};
use crate::listed::{ScopeKind, Totals, find_totals};
use crate::{Row, StoreError, Tx, Value, params};

/// An organization with its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganizationRow {
    /// The organization.
    pub organization: Organization,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its row was changed last.
    pub updated_at: Timestamp,
    /// Its threads.
    pub threads: u64,
    /// The sums over its markets on chain.
    pub totals: Totals,
}

/// A partner with its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerRow {
    /// The partner.
    pub partner: Partner,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its row was changed last.
    pub updated_at: Timestamp,
    /// Its threads.
    pub threads: u64,
    /// The sums over its markets on chain.
    pub totals: Totals,
}

/// A chapter with its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChapterRow {
    /// The chapter.
    pub chapter: Chapter,
    /// The sums over its markets on chain.
    pub totals: Totals,
    /// How many of its markets are open.
    pub open_markets: u64,
}

/// What a list of partners is narrowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartnerFilter {
    /// Partners of this organization.
    pub organization_id: OrganizationId,
    /// Active partners, or those that are not; all where absent.
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

/// The organization with this id.
pub async fn get_organization(
    tx: &mut Tx,
    id: OrganizationId,
) -> Result<Option<OrganizationRow>, StoreError> {
    const TIMES: &str = "SELECT created_at_ms, updated_at_ms FROM organizations WHERE id = $1";
    let Some(organization) = catalog::find_organization(tx, id).await? else { return Ok(None) };
    let times = tx.find(TIMES, &params![id], |row| Ok((row.timestamp(0)?, row.timestamp(1)?))).await?;
    let (created_at, updated_at) = times.ok_or_else(|| StoreError::missing("organizations"))?;
    let threads = count_of(tx, Some(id), None).await?;
    let totals = find_totals(tx, ScopeKind::Organization, &id.to_string()).await?;
    Ok(Some(OrganizationRow { organization, created_at, updated_at, threads, totals }))
}

/// The partner with this id.
pub async fn get_partner(tx: &mut Tx, id: PartnerId) -> Result<Option<PartnerRow>, StoreError> {
    Ok(partners(tx, "SELECT id FROM partners WHERE id = $1", &params![id]).await?.pop())
}

/// The partners of a page, a query of their ids, the newest first. One statement for all of them.
async fn partners(tx: &mut Tx, page: &str, bound: &[Value<'_>]) -> Result<Vec<PartnerRow>, StoreError> {
    use catalog::partner::{COLUMNS, from_row};
    // The crossing keeps the page outermost.
    let sql = format!(
        "SELECT p.*, (SELECT COUNT(*) FROM threads t WHERE t.partner_id = p.id), {SUMS} FROM ({page}) page CROSS JOIN
        (SELECT {COLUMNS}, created_at_ms, updated_at_ms FROM partners) p LEFT JOIN totals s ON s.scope = 'partner'
        AND s.scope_id = p.id WHERE p.id = page.id ORDER BY p.created_at_ms DESC, p.id DESC"
    );
    tx.list_shaped(&sql, bound, |row| {
        Ok(PartnerRow {
            partner: from_row(row)?,
            created_at: row.timestamp(8)?,
            updated_at: row.timestamp(9)?,
            threads: row.number(10)?,
            totals: sums_from(row, 11)?,
        })
    })
    .await
}

/// An organization's partners, the newest first.
pub async fn list_partners(
    tx: &mut Tx,
    filter: &PartnerFilter,
    extent: Extent,
) -> Result<Listed<PartnerRow>, StoreError> {
    let mut clauses = filter.clauses();
    let conditions = clauses.sql().to_owned();
    let (limit, offset) = (clauses.bind(extent.limit.into()), clauses.bind(extent.offset.into()));
    let page = format!(
        "SELECT id FROM partners WHERE 1 = 1{conditions} ORDER BY created_at_ms DESC, id DESC LIMIT {limit} OFFSET {offset}"
    );
    let items = partners(tx, &page, &clauses.bound).await?;
    let all = filter.clauses();
    let sql = format!("SELECT COUNT(*) FROM partners WHERE 1 = 1{}", all.sql());
    let counted = tx.list_shaped(&sql, &all.bound, |row| row.number(0)).await?;
    Ok(Listed { items, total: counted.first().copied().unwrap_or_default() })
}

/// A thread's chapters in their order, at most 1,000.
pub async fn list_chapters(tx: &mut Tx, thread_id: ThreadId) -> Result<Vec<ChapterRow>, StoreError> {
    use catalog::chapter::{COLUMNS, from_row};
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        ", COALESCE(s.open_markets, 0), ",
        SUMS,
        " FROM chapters c LEFT JOIN totals s ON s.scope = 'chapter' AND s.scope_id = c.id
        WHERE c.thread_id = $1 ORDER BY c.position, c.id LIMIT 1000"
    );
    let chapter = |row: &Row<'_>| {
        Ok(ChapterRow { chapter: from_row(row)?, open_markets: row.number(4)?, totals: sums_from(row, 5)? })
    };
    tx.list(SQL, &params![thread_id], chapter).await
}

/// The kept sums `s` of a row, all zero where no market was ever counted.
const SUMS: &str =
    "COALESCE(s.open_markets + s.frozen_markets + s.resolved_markets + s.cancelled_markets + s.refunded_markets, 0),
    COALESCE(s.volume_usdc_atomic, 0), COALESCE(s.participants, 0)";

fn sums_from(row: &Row<'_>, first: usize) -> Result<Totals, StoreError> {
    Ok(Totals {
        markets: row.number(first)?,
        volume: row.usdc(first + 1)?,
        participants: row.number(first + 2)?,
    })
}
