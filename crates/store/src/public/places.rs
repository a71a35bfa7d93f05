//! The pages that the web application has of threads and markets, for sitemaps.

use domain::Timestamp;

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
    const MARKETS: &str = "SELECT COUNT(*) FROM markets WHERE chain_market_id IS NOT NULL";
    let threads = tx.find(THREADS, &params![], |row| row.number(0)).await?;
    let markets = tx.find(MARKETS, &params![], |row| row.number(0)).await?;
    Ok((threads.unwrap_or_default(), markets.unwrap_or_default()))
}

/// The pages of one part of `most` pages each, the first part being 0, in the order of their ids.
pub async fn list_places(
    tx: &mut Tx,
    kind: PlaceKind,
    most: u32,
    part: u32,
) -> Result<Vec<Place>, StoreError> {
    const THREADS: &str = "SELECT id, updated_at_ms FROM threads ORDER BY id LIMIT $1 OFFSET $2";
    const MARKETS: &str = "SELECT id, CASE WHEN as_of_ms > created_at_ms THEN as_of_ms ELSE created_at_ms END
        FROM markets WHERE chain_market_id IS NOT NULL ORDER BY id LIMIT $1 OFFSET $2";
    let sql = match kind {
        PlaceKind::Thread => THREADS,
        PlaceKind::Market => MARKETS,
    };
    let place = |row: &Row<'_>| Ok(Place { kind, id: row.text(0)?, changed_at: row.timestamp(1)? });
    tx.list(sql, &params![most, i64::from(most) * i64::from(part)], place).await
}
