//! The backlog: markets and threads of which nothing has been counted yet.
//!
//! The rebuild adds all movements of a market to its sums. So it is no way to fill a new column of
//! sums that already exist: fill that column in its migration.

use domain::ids::{MarketId, ThreadId};

use crate::{StoreError, Tx, params};

/// A market or thread in the backlog. New movements of such a market are not added one by one,
/// because the rebuild includes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraderBacklogEntry {
    Market(MarketId),
    Thread(ThreadId),
}

const MARKET: &str = "market";
const THREAD: &str = "thread";

/// Lists the first entries of the backlog.
pub async fn list_behind(tx: &mut Tx, limit: u32) -> Result<Vec<TraderBacklogEntry>, StoreError> {
    const SQL: &str = "SELECT id, kind FROM aggregate_backlog ORDER BY kind, id LIMIT $1";
    tx.list(SQL, &params![limit], |row| match row.get::<String>("kind")?.as_str() {
        MARKET => row.get("id").map(TraderBacklogEntry::Market),
        THREAD => row.get("id").map(TraderBacklogEntry::Thread),
        _ => Err(row.corrupt("kind", "not a kind of backlog")),
    })
    .await
}

/// Reports whether a market is in the backlog.
pub async fn is_behind(tx: &mut Tx, id: MarketId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM aggregate_backlog WHERE kind = $1 AND id = $2";
    tx.exists(SQL, &params![MARKET, id]).await
}

/// Removes an entry from the backlog after its rebuild.
pub async fn finish(tx: &mut Tx, behind: TraderBacklogEntry) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM aggregate_backlog WHERE kind = $1 AND id = $2";
    let bound = match behind {
        TraderBacklogEntry::Market(id) => params![MARKET, id],
        TraderBacklogEntry::Thread(id) => params![THREAD, id],
    };
    tx.exec(SQL, &bound).await.map(drop)
}

/// Deletes all derived rows and puts every market and thread into the backlog.
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
    // SQLite needs the `WHERE 1 = 1` to parse `ON CONFLICT` after a SELECT.
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
    // Lists are incomplete until the rebuild has finished.
    tx.mark_markets_changed();
    tx.exec(MARKETS, &[]).await?;
    tx.exec(THREADS, &[]).await.map(drop)
}
