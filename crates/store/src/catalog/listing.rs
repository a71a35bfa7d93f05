//! What can be changed of a market at any time: what it is described with, and what it is arranged under. Its terms are
//! the chain's.

use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use serde::Serialize;

use crate::{Row, StoreError, Tx, params};

/// How a market is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The market.
    pub market_id: MarketId,
    /// Markdown.
    pub description: Option<String>,
    /// Such as `sports`.
    pub category: Option<String>,
    /// Free words.
    pub tags: Vec<String>,
    /// Its thread.
    pub thread_id: Option<ThreadId>,
    /// Its organization.
    pub organization_id: Option<OrganizationId>,
    /// Its partner.
    pub partner_id: Option<PartnerId>,
    /// The chapter of its thread.
    pub chapter_id: Option<String>,
    /// The post it came from.
    pub source_url: Option<String>,
    /// Its place among the featured markets, the least first; absent where it is not featured.
    pub featured_position: Option<u32>,
}

const COLUMNS: &str =
    "id, description, category, tags, thread_id, organization_id, partner_id, chapter_id, source_url,
    featured_position";

fn from_row(row: &Row<'_>) -> Result<Listing, StoreError> {
    Ok(Listing {
        market_id: row.parse(0)?,
        description: row.opt_text(1)?,
        category: row.opt_text(2)?,
        tags: row.texts(3)?,
        thread_id: row.opt_parse(4)?,
        organization_id: row.opt_parse(5)?,
        partner_id: row.opt_parse(6)?,
        chapter_id: row.opt_text(7)?,
        source_url: row.opt_text(8)?,
        featured_position: row.opt_number(9)?,
    })
}

/// Takes a market's row for a change and tells how it is listed.
pub async fn lock_listing(tx: &mut Tx, id: MarketId) -> Result<Option<Listing>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("UPDATE markets SET category = category WHERE id = $1 RETURNING ", COLUMNS);
    crate::traders::lock(tx).await?;
    tx.find(SQL, &params![id], from_row).await
}

/// Writes back how a market is listed whose row was taken.
pub async fn put_listing(tx: &mut Tx, l: &Listing) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET description = $1, category = $2, tags = $3, thread_id = $4,
        organization_id = $5, partner_id = $6, chapter_id = $7, source_url = $8, featured_position = $9
        WHERE id = $10";
    let tags = serde_json::to_string(&l.tags).map_err(|error| StoreError::unwritable(&error))?;
    let bound = params![
        l.description.as_deref(),
        l.category.as_deref(),
        tags,
        l.thread_id,
        l.organization_id,
        l.partner_id,
        l.chapter_id.as_deref(),
        l.source_url.as_deref(),
        l.featured_position,
        l.market_id
    ];
    tx.mark_markets_changed();
    tx.exec(SQL, &bound).await?;
    crate::listed::refresh(tx, l.market_id).await
}

/// Where a market's organization and partner are not those of its thread: what the market has, and what the thread has.
pub async fn misfiled(tx: &mut Tx, id: MarketId) -> Result<Option<(String, String)>, StoreError> {
    const SQL: &str = "SELECT m.organization_id, m.partner_id, t.organization_id, t.partner_id FROM markets m
        JOIN threads t ON t.id = m.thread_id WHERE m.id = $1";
    let owners = |row: &Row<'_>, first: usize| Ok((row.opt_text(first)?, row.opt_text(first + 1)?));
    let found = tx.find(SQL, &params![id], |row| Ok((owners(row, 0)?, owners(row, 2)?))).await?;
    let differ = found.filter(|(of_market, of_thread)| of_market != of_thread);
    Ok(differ.map(|(of_market, of_thread)| (format!("{of_market:?}"), format!("{of_thread:?}"))))
}
