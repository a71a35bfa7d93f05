//! Reads of all derived rows, for verification against a fresh computation.

use std::collections::BTreeMap;

use domain::ids::MarketId;

use super::windows::Edges;
use crate::listed::ListStatus;
use crate::{Row, StoreError, Tx, params};

/// Names of rows, and the numbers that they contain.
pub type Kept = BTreeMap<String, Vec<i64>>;

/// Returns a market's traders by account, with trades, USDC, realized profit and the time of the
/// last trade.
pub async fn traders_of(tx: &mut Tx, market_id: MarketId) -> Result<Kept, StoreError> {
    const SQL: &str =
        "SELECT account, trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic, last_trade_ms
        FROM traders WHERE market_id = $1";
    Ok(tx.list(SQL, &params![market_id], |row| named(row, 1, 4)).await?.into_iter().collect())
}

/// Compares a market's list row with the market. Returns the stored and the expected content if
/// they differ.
pub async fn misplaced(tx: &mut Tx, id: MarketId) -> Result<Option<(String, String)>, StoreError> {
    crate::listed::compare(tx, id).await
}

/// Returns the number of participants in the market's list row.
pub async fn participants_of(tx: &mut Tx, id: MarketId) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT participants FROM listed_markets WHERE market_id = $1";
    Ok(tx.find(SQL, &params![id], |row| row.only()).await?.unwrap_or_default())
}

/// Returns all derived rows that do not belong to one market, named by their table and key.
pub async fn all(tx: &mut Tx) -> Result<(Kept, Edges), StoreError> {
    const EDGES: &str = "SELECT window_ms, start_ms FROM trending_windows";
    // Each query with the number of columns of its name, and of its numbers.
    const TABLES: [(&str, usize, usize); 6] = [
        ("SELECT 'participants', scope, scope_id, account, markets FROM participants", 4, 1),
        (
            "SELECT 'totals', scope, scope_id, open_markets, frozen_markets, resolved_markets, cancelled_markets,
            refunded_markets, volume_usdc_atomic, participants FROM totals",
            3,
            7,
        ),
        (
            "SELECT 'buckets', CAST(start_ms AS TEXT), market_id, trade_count, volume_usdc_atomic FROM market_buckets",
            3,
            2,
        ),
        (
            "SELECT 'trending', CAST(window_ms AS TEXT), market_id, trade_count, volume_usdc_atomic, unique_traders,
            score_e4 FROM trending_markets",
            3,
            4,
        ),
        (
            "SELECT 'leaderboard', account, trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic FROM leaderboard",
            2,
            3,
        ),
        (
            "SELECT 'spans', CAST(span_ms AS TEXT), CAST(start_ms AS TEXT), account, trade_count, volume_usdc_atomic,
            realized_pnl_usdc_atomic FROM leaderboard_spans",
            4,
            3,
        ),
    ];
    let edges = tx.list(EDGES, &[], |row| Ok((row.get("window_ms")?, row.get("start_ms")?))).await?;
    let mut kept = Kept::new();
    for (sql, names, numbers) in TABLES {
        kept.extend(tx.list(sql, &[], |row| named(row, names, numbers)).await?);
    }
    Ok((kept, Edges(edges)))
}

/// Joins the columns of a name, and reads the numbers after them.
fn named(row: &Row<'_>, names: usize, numbers: usize) -> Result<(String, Vec<i64>), StoreError> {
    let mut columns = row.columns();
    let name: Result<Vec<String>, StoreError> = (0..names).map(|_| columns.following()).collect();
    let numbers: Result<Vec<i64>, StoreError> = (0..numbers).map(|_| columns.following()).collect();
    Ok((name?.join(" "), numbers?))
}

/// The index of the totals column that counts markets of this status.
pub fn column_of(status: ListStatus) -> usize {
    ListStatus::ALL.into_iter().position(|known| known == status).unwrap_or_default()
}
