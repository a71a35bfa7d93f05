//! The sync's progress: the last block that was read from the chain, and the last one whose events
//! settled trades.

use alloy_primitives::B256;
use domain::Timestamp;

pub use crate::engine::CHAIN_IDENTITY;
use crate::record::{Insert, Record, all_values, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// A block up to which the sync has read.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SyncBlock: Insert {
        pub number: u64,
        pub hash: B256,
        pub at: Timestamp = "at_ms",
        /// A digest of the block's logs, present if the block must be read again before it is settled.
        pub logs_digest: Option<String>,
    }
}

/// Returns the last block that was read, at or below `at_most` if given.
pub async fn find_last(tx: &mut Tx, at_most: Option<u64>) -> Result<Option<SyncBlock>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SyncBlock::COLUMNS,
        " FROM sync_blocks WHERE number <= $1 ORDER BY number DESC LIMIT 1"
    );
    let at_most = at_most.map_or(Ok(SqlValue::Int(i64::MAX)), SqlValue::try_from)?;
    tx.find(SQL, &[at_most], SyncBlock::from_row).await
}

/// Lists the stored blocks in `from..=to` in ascending order, at most `limit`.
pub async fn list(tx: &mut Tx, from: u64, to: u64, limit: u32) -> Result<Vec<SyncBlock>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SyncBlock::COLUMNS,
        " FROM sync_blocks WHERE number >= $1 AND number <= $2 ORDER BY number LIMIT $3"
    );
    let (from, to) = (SqlValue::try_from(from)?, SqlValue::try_from(to)?);
    tx.list(SQL, &[from, to, SqlValue::from(limit)], SyncBlock::from_row).await
}

/// Returns the number of the newest stored block that is not newer than `at`, or 0 if there is
/// none.
pub async fn find_block_before(tx: &mut Tx, at: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str = "SELECT COALESCE(MAX(number), 0) AS number FROM sync_blocks WHERE at_ms <= $1";
    Ok(tx.find(SQL, &params![at], |row| row.only()).await?.unwrap_or_default())
}

/// Stores blocks that were read, and deletes blocks below `keep_from`.
pub async fn put(tx: &mut Tx, blocks: &[SyncBlock], keep_from: u64) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO sync_blocks (",
        SyncBlock::COLUMNS,
        ") VALUES (",
        SyncBlock::PLACEHOLDERS,
        ") ON CONFLICT (number) DO UPDATE SET hash = excluded.hash, at_ms = excluded.at_ms,
        logs_digest = excluded.logs_digest"
    );
    const FORGET: &str = "DELETE FROM sync_blocks WHERE number < $1";
    tx.exec_each(SQL, &all_values(blocks)?).await?;
    tx.exec(FORGET, &[SqlValue::try_from(keep_from)?]).await.map(drop)
}

/// Deletes the blocks after `fork`, which are no longer on the canonical chain.
pub async fn delete_after(tx: &mut Tx, fork: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM sync_blocks WHERE number > $1";
    tx.exec(SQL, &[SqlValue::try_from(fork)?]).await.map(drop)
}

pub async fn find_setting(tx: &mut Tx, name: &str) -> Result<Option<String>, StoreError> {
    const SQL: &str = "SELECT value FROM settings WHERE name = $1";
    tx.find(SQL, &params![name], |row| row.only()).await
}

pub async fn put_setting(tx: &mut Tx, name: &str, value: &str) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO settings (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    tx.exec(SQL, &params![name, value]).await.map(drop)
}

/// Sets a setting that never changes once it is set.
pub async fn keep_setting(tx: &mut Tx, name: &str, value: &str) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    tx.exec(SQL, &params![name, value]).await.map(drop)
}

/// Returns the last block whose events have settled trades. Settled blocks are final and never read
/// again.
pub async fn find_settled(tx: &mut Tx) -> Result<Option<u64>, StoreError> {
    Ok(find_setting(tx, SETTLED).await?.and_then(|text| text.parse().ok()))
}

pub async fn put_settled(tx: &mut Tx, block: u64) -> Result<(), StoreError> {
    put_setting(tx, SETTLED, &block.to_string()).await
}

pub(crate) const SETTLED: &str = "sync.settled_block";
