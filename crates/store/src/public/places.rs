//! Pages of the web application for threads and markets, listed in sitemaps.

use domain::Timestamp;

use crate::listed::{ScopeKind, find_totals};
use crate::{Row, StoreError, Tx, params};

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SitemapPageKind {
    Thread,
    Market,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitemapPage {
    pub kind: SitemapPageKind,
    /// The id of the thread or market.
    pub id: String,
    /// The time of the last known change of its content.
    pub changed_at: Timestamp,
}

/// Counts the threads, and the markets on chain.
pub async fn count_places(tx: &mut Tx) -> Result<(u64, u64), StoreError> {
    const THREADS: &str = "SELECT COUNT(*) AS count FROM threads";
    let threads = tx.find(THREADS, &params![], |row| row.only()).await?;
    let all = find_totals(tx, ScopeKind::All, "").await?;
    Ok((threads.unwrap_or_default(), all.markets))
}

/// Lists part number `part`, from 0, of pages sorted by id. Each part has `most` pages. Earlier
/// parts are skipped within an index.
pub async fn list_places(
    tx: &mut Tx,
    kind: SitemapPageKind,
    most: u32,
    part: u32,
) -> Result<Vec<SitemapPage>, StoreError> {
    const THREADS: &str =
        "SELECT t.id, t.updated_at_ms AS changed_at_ms FROM (SELECT id FROM threads ORDER BY id LIMIT $1 OFFSET $2) p
        CROSS JOIN threads t WHERE t.id = p.id ORDER BY p.id";
    const MARKETS: &str =
        "SELECT m.id, CASE WHEN m.as_of_ms > m.created_at_ms THEN m.as_of_ms ELSE m.created_at_ms END AS changed_at_ms
        FROM (SELECT market_id FROM listed_markets ORDER BY market_id LIMIT $1 OFFSET $2) p
        CROSS JOIN markets m WHERE m.id = p.market_id ORDER BY p.market_id";
    let sql = match kind {
        SitemapPageKind::Thread => THREADS,
        SitemapPageKind::Market => MARKETS,
    };
    let place =
        |row: &Row<'_>| Ok(SitemapPage { kind, id: row.get("id")?, changed_at: row.get("changed_at_ms")? });
    tx.list(sql, &params![most, i64::from(most) * i64::from(part)], place).await
}
