//! The statuses that markets have had, in the order of the chain, among the ids of movements.

use domain::Timestamp;
use domain::ids::MarketId;
use domain::market::MarketStatus;

use crate::movements::Movement;
use crate::{Row, StoreError, Tx, Value, params};

/// A place behind every event of a block.
const BEHIND_ALL: u32 = 999_999;

/// A status that a market has had from a place of the chain on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChange {
    /// The market.
    pub market_id: MarketId,
    /// The place, as ids of movements tell it.
    pub id: String,
    /// Its block.
    pub block_number: u64,
    /// The status.
    pub status: MarketStatus,
    /// When.
    pub at: Timestamp,
}

impl StatusChange {
    /// A status that begins by the clock, and not by an event: behind the last block that was read by then.
    pub fn by_the_clock(market_id: MarketId, block_number: u64, status: MarketStatus, at: Timestamp) -> Self {
        Self { market_id, id: Movement::id_at(block_number, BEHIND_ALL), block_number, status, at }
    }
}

/// The place behind every event of a block, and before what begins by the clock after it.
pub fn end_of_block(block_number: u64) -> String {
    Movement::id_at(block_number, BEHIND_ALL - 1)
}

/// Notes statuses. What stood at the same place before is replaced.
pub async fn put(tx: &mut Tx, changes: &[StatusChange]) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO market_statuses (market_id, id, block_number, status, at_ms)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (market_id, id) DO UPDATE SET status = excluded.status,
        at_ms = excluded.at_ms";
    let rows: Result<Vec<Vec<Value<'_>>>, StoreError> = changes
        .iter()
        .map(|change| {
            let StatusChange { market_id, id, block_number, status, at } = change;
            Ok(params![*market_id, id, Value::try_from(*block_number)?, status.as_str(), *at].to_vec())
        })
        .collect();
    tx.exec_each(SQL, &rows?).await.map(drop)
}

/// A market's statuses behind the place `after` in blocks up to `to`, in their order.
pub async fn list_after(
    tx: &mut Tx,
    market_id: MarketId,
    after: &str,
    to: u64,
    limit: u32,
) -> Result<Vec<StatusChange>, StoreError> {
    const SQL: &str = "SELECT market_id, id, block_number, status, at_ms FROM market_statuses
        WHERE market_id = $1 AND id > $2 AND block_number <= $3 ORDER BY id LIMIT $4";
    tx.list(SQL, &params![market_id, after, Value::try_from(to)?, limit], from_row).await
}

fn from_row(row: &Row<'_>) -> Result<StatusChange, StoreError> {
    Ok(StatusChange {
        market_id: row.parse(0)?,
        id: row.text(1)?,
        block_number: row.number(2)?,
        status: row.parse(3)?,
        at: row.timestamp(4)?,
    })
}

/// A market's last status in blocks up to `block`.
pub async fn find_last(
    tx: &mut Tx,
    market_id: MarketId,
    block: u64,
) -> Result<Option<StatusChange>, StoreError> {
    const SQL: &str = "SELECT market_id, id, block_number, status, at_ms FROM market_statuses
        WHERE market_id = $1 AND block_number <= $2 ORDER BY id DESC LIMIT 1";
    tx.find(SQL, &params![market_id, Value::try_from(block)?], from_row).await
}

/// The block of the first thing that was noted of a market: its creation.
pub async fn find_first_block(tx: &mut Tx, market_id: MarketId) -> Result<Option<u64>, StoreError> {
    const SQL: &str = "SELECT block_number FROM market_statuses WHERE market_id = $1 ORDER BY id LIMIT 1";
    tx.find(SQL, &params![market_id], |row| row.number(0)).await
}

/// Deletes what was noted of a market in blocks after `block`.
pub async fn delete_of_market_after(tx: &mut Tx, market_id: MarketId, block: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM market_statuses WHERE market_id = $1 AND block_number > $2";
    tx.exec(SQL, &params![market_id, Value::try_from(block)?]).await.map(drop)
}

/// Takes back everything noted of blocks after `fork`.
pub async fn delete_after(tx: &mut Tx, fork: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM market_statuses WHERE block_number > $1";
    tx.exec(SQL, &[Value::try_from(fork)?]).await.map(drop)
}

/// The markets of which something was noted or moved in the blocks `from..=to`.
pub async fn list_touched(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<MarketId>, StoreError> {
    const SQL: &str = "SELECT market_id FROM movements WHERE block_number >= $1 AND block_number <= $2
        UNION SELECT market_id FROM market_statuses WHERE block_number >= $1 AND block_number <= $2";
    tx.list(SQL, &[Value::try_from(from)?, Value::try_from(to)?], |row| row.parse(0)).await
}
