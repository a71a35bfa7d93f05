//! The history of market statuses, in chain order, with keys that are comparable to ids of
//! movements.

use domain::Timestamp;
use domain::ids::MarketId;
use domain::market::MarketStatus;

use crate::movements::Movement;
use crate::record::{Insert, Record, all_values, record};
use crate::{SqlValue, StoreError, Tx, params};

/// A log index after every event of a block.
const BEHIND_ALL: u32 = 999_999;

record! {
    /// A change of a market's status.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StatusChange: Insert {
        pub market_id: MarketId,
        /// The position on the chain, in the format of movement ids.
        pub id: String,
        pub block_number: u64,
        /// The new status.
        pub status: MarketStatus,
        pub at: Timestamp = "at_ms",
    }
}

impl StatusChange {
    /// A status change caused by the clock and not by an event. It is placed after the last block
    /// that was read by then.
    pub fn by_the_clock(market_id: MarketId, block_number: u64, status: MarketStatus, at: Timestamp) -> Self {
        Self { market_id, id: Movement::id_at(block_number, BEHIND_ALL), block_number, status, at }
    }
}

/// The position after all events of a block, and before a status change by the clock in the same
/// block.
pub fn end_of_block(block_number: u64) -> String {
    Movement::id_at(block_number, BEHIND_ALL - 1)
}

/// Stores status changes. Existing ones at the same position are replaced.
pub async fn put(tx: &mut Tx, changes: &[StatusChange]) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO market_statuses (",
        StatusChange::COLUMNS,
        ") VALUES (",
        StatusChange::PLACEHOLDERS,
        ") ON CONFLICT (market_id, id) DO UPDATE SET status = excluded.status,
        at_ms = excluded.at_ms"
    );
    tx.exec_each(SQL, &all_values(changes)?).await.map(drop)
}

/// Lists a market's status changes after the position `after`, in blocks up to `to`, in order.
pub async fn list_after(
    tx: &mut Tx,
    market_id: MarketId,
    after: &str,
    to: u64,
    limit: u32,
) -> Result<Vec<StatusChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        StatusChange::COLUMNS,
        " FROM market_statuses WHERE market_id = $1 AND id > $2 AND block_number <= $3 ORDER BY id LIMIT $4"
    );
    tx.list(SQL, &params![market_id, after, SqlValue::try_from(to)?, limit], StatusChange::from_row).await
}

/// Returns a market's last status change in blocks up to `block`.
pub async fn find_last(
    tx: &mut Tx,
    market_id: MarketId,
    block: u64,
) -> Result<Option<StatusChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        StatusChange::COLUMNS,
        " FROM market_statuses WHERE market_id = $1 AND block_number <= $2 ORDER BY id DESC LIMIT 1"
    );
    tx.find(SQL, &params![market_id, SqlValue::try_from(block)?], StatusChange::from_row).await
}

/// Returns the block of a market's first status change, which is its creation.
pub async fn find_first_block(tx: &mut Tx, market_id: MarketId) -> Result<Option<u64>, StoreError> {
    const SQL: &str = "SELECT block_number FROM market_statuses WHERE market_id = $1 ORDER BY id LIMIT 1";
    tx.find(SQL, &params![market_id], |row| row.only()).await
}

/// Deletes a market's status changes in blocks after `block`.
pub async fn delete_of_market_after(tx: &mut Tx, market_id: MarketId, block: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM market_statuses WHERE market_id = $1 AND block_number > $2";
    tx.exec(SQL, &params![market_id, SqlValue::try_from(block)?]).await.map(drop)
}

/// Deletes all status changes in blocks after `fork`.
pub async fn delete_after(tx: &mut Tx, fork: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM market_statuses WHERE block_number > $1";
    tx.exec(SQL, &[SqlValue::try_from(fork)?]).await.map(drop)
}

/// Lists the markets with a status change or a movement in the blocks `from..=to`.
pub async fn list_touched(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<MarketId>, StoreError> {
    const SQL: &str = "SELECT market_id FROM movements WHERE block_number >= $1 AND block_number <= $2
        UNION SELECT market_id FROM market_statuses WHERE block_number >= $1 AND block_number <= $2";
    tx.list(SQL, &[SqlValue::try_from(from)?, SqlValue::try_from(to)?], |row| row.only()).await
}
