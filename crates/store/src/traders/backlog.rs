//! Markets and threads of which everything that is summed is still to be made.

use std::str::FromStr;

use domain::ids::{MarketId, ThreadId};

use crate::{Row, StoreError, Tx, params};

/// Something whose sums and words are still to be made. Movements of such a market are not counted one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// A market.
    Market(MarketId),
    /// A thread.
    Thread(ThreadId),
}

const MARKET: &str = "market";
const THREAD: &str = "thread";

/// The first ones that are behind.
pub async fn list_behind(tx: &mut Tx, limit: u32) -> Result<Vec<Behind>, StoreError> {
    const SQL: &str = "SELECT id, kind FROM aggregate_backlog ORDER BY kind, id LIMIT $1";
    tx.list(SQL, &params![limit], |row| match row.str(1)? {
        MARKET => parse(row).map(Behind::Market),
        THREAD => parse(row).map(Behind::Thread),
        _ => Err(row.corrupt(1, "not a kind of backlog")),
    })
    .await
}

fn parse<T: FromStr>(row: &Row<'_>) -> Result<T, StoreError> {
    row.parse(0)
}

/// Whether this market is behind.
pub async fn is_behind(tx: &mut Tx, id: MarketId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM aggregate_backlog WHERE kind = $1 AND id = $2";
    Ok(tx.find(SQL, &params![MARKET, id], |row| row.int(0)).await?.is_some())
}

/// Notes that this is made.
pub async fn finish(tx: &mut Tx, behind: Behind) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM aggregate_backlog WHERE kind = $1 AND id = $2";
    let bound = match behind {
        Behind::Market(id) => params![MARKET, id],
        Behind::Thread(id) => params![THREAD, id],
    };
    tx.exec(SQL, &bound).await.map(drop)
}

/// Forgets everything that is summed and notes that all of it is to be made again.
pub async fn restart(tx: &mut Tx) -> Result<(), StoreError> {
    const FORGET: [&str; 9] = [
        "DELETE FROM traders",
        "DELETE FROM participants",
        "DELETE FROM market_buckets",
        "DELETE FROM trending_markets",
        "DELETE FROM leaderboard",
        "DELETE FROM leaderboard_spans",
        "DELETE FROM totals",
        "DELETE FROM listed_markets",
        "DELETE FROM search_terms",
    ];
    const MARKETS: &str =
        "INSERT INTO aggregate_backlog (kind, id) SELECT 'market', id FROM markets WHERE 1 = 1
        ON CONFLICT (kind, id) DO NOTHING";
    const THREADS: &str =
        "INSERT INTO aggregate_backlog (kind, id) SELECT 'thread', id FROM threads WHERE 1 = 1
        ON CONFLICT (kind, id) DO NOTHING";
    super::lock(tx).await?;
    for sql in FORGET {
        tx.exec(sql, &[]).await?;
    }
    tx.mark_markets_changed();
    tx.exec(MARKETS, &[]).await?;
    tx.exec(THREADS, &[]).await.map(drop)
}
