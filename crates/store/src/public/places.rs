//! The pages that the web application has of threads and markets, for sitemaps.

use domain::Timestamp;

use crate::listed::{ScopeKind, find_totals};
use crate::{Row, StoreError, Tx, params};

/// Whose page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A thread's.
    Thread,
    /// A market's.
    Market,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub kind: PlaceKind,
    /// The thread's or the market's id.
    pub id: String,
    /// When what it shows was changed last, as far as that is noted.
    pub changed_at: Timestamp,
}

/// How many threads there are, and how many markets on chain.
pub async fn count_places(tx: &mut Tx) -> Result<(u64, u64), StoreError> {
    const THREADS: &str = "SELECT COUNT(*) FROM threads";
    let threads = tx.find(THREADS, &params![], |row| row.number(0)).await?;
    let all = find_totals(tx, ScopeKind::All, "").await?;
    Ok((threads.unwrap_or_default(), all.markets))
}

/// The pages of one part of `most` pages each, the first part being 0, in the order of their ids. Those of the parts before it
/// are passed over in an index.
pub async fn list_places(
    tx: &mut Tx,
    kind: PlaceKind,
    most: u32,
    part: u32,
) -> Result<Vec<Place>, StoreError> {
    const THREADS: &str =
        "SELECT t.id, t.updated_at_ms FROM (SELECT id FROM threads ORDER BY id LIMIT $1 OFFSET $2) p
        CROSS JOIN threads t WHERE t.id = p.id ORDER BY p.id";
    const MARKETS: &str =
        "SELECT m.id, CASE WHEN m.as_of_ms > m.created_at_ms THEN m.as_of_ms ELSE m.created_at_ms END
        FROM (SELECT market_id FROM listed_markets ORDER BY market_id LIMIT $1 OFFSET $2) p
        CROSS JOIN markets m WHERE m.id = p.market_id ORDER BY p.market_id";
    let sql = match kind {
        PlaceKind::Thread => THREADS,
        PlaceKind::Market => MARKETS,
    };
    let place = |row: &Row<'_>| Ok(Place { kind, id: row.text(0)?, changed_at: row.timestamp(1)? });
    tx.list(sql, &params![most, i64::from(most) * i64::from(part)], place).await
}
