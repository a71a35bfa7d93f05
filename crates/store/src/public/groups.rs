//! Organizations, partners and chapters with their sums.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};

use super::clauses::Clauses;
use super::threads::count_of;
use super::{Extent, Listed};
use crate::catalog::{self, Chapter, Organization, Partner};
use crate::listed::{ScopeKind, Totals, find_totals};
use crate::{StoreError, Tx, params};

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
    const TIMES: &str = "SELECT created_at_ms, updated_at_ms FROM partners WHERE id = $1";
    let Some(partner) = catalog::find_partner(tx, id).await? else { return Ok(None) };
    let times = tx.find(TIMES, &params![id], |row| Ok((row.timestamp(0)?, row.timestamp(1)?))).await?;
    let (created_at, updated_at) = times.ok_or_else(|| StoreError::missing("partners"))?;
    let threads = count_of(tx, None, Some(id)).await?;
    let totals = find_totals(tx, ScopeKind::Partner, &id.to_string()).await?;
    Ok(Some(PartnerRow { partner, created_at, updated_at, threads, totals }))
}

/// An organization's partners, the newest first.
pub async fn list_partners(
    tx: &mut Tx,
    filter: &PartnerFilter,
    extent: Extent,
) -> Result<Listed<PartnerRow>, StoreError> {
    let clauses = || {
        let mut clauses = Clauses::default();
        clauses.and("organization_id = ?", params![filter.organization_id]);
        if let Some(active) = filter.active {
            clauses.and("status = ?", params![if active { "active" } else { "inactive" }]);
        }
        clauses
    };
    let mut page = clauses();
    let conditions = page.sql().to_owned();
    let (limit, offset) = (page.bind(extent.limit.into()), page.bind(extent.offset.into()));
    let sql = format!(
        "SELECT id FROM partners WHERE 1 = 1{conditions} ORDER BY created_at_ms DESC, id DESC LIMIT {limit} OFFSET {offset}"
    );
    let ids: Vec<PartnerId> = tx.list_shaped(&sql, &page.bound, |row| row.parse(0)).await?;
    let mut items = Vec::with_capacity(ids.len());
    for id in ids {
        items.extend(get_partner(tx, id).await?);
    }
    let all = clauses();
    let sql = format!("SELECT COUNT(*) FROM partners WHERE 1 = 1{}", all.sql());
    let counted = tx.list_shaped(&sql, &all.bound, |row| row.number(0)).await?;
    Ok(Listed { items, total: counted.first().copied().unwrap_or_default() })
}

/// A thread's chapters in their order.
pub async fn list_chapters(tx: &mut Tx, thread_id: ThreadId) -> Result<Vec<ChapterRow>, StoreError> {
    let mut rows = Vec::new();
    for chapter in catalog::list_chapters(tx, thread_id).await? {
        let totals = find_totals(tx, ScopeKind::Chapter, &chapter.id).await?;
        let scope = (ScopeKind::Chapter, chapter.id.clone());
        let open_markets = crate::listed::count(tx, &scope, &[crate::listed::ListStatus::Open]).await?;
        rows.push(ChapterRow { chapter, totals, open_markets });
    }
    Ok(rows)
}
