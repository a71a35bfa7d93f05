//! Quarantined markets, whose events could not be applied, and blocks that the operator has
//! excluded from the sync.

use domain::Timestamp;
use domain::ids::MarketId;

use crate::record::{Insert, Record, record};
use crate::{SqlValue, StoreError, Tx, markets, params};

record! {
    /// A market whose rows may differ from the chain.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Quarantine: Insert {
        pub market_id: MarketId,
        /// The first block whose events of this market were not applied.
        pub block_number: u64,
        /// The reason as a short code.
        pub reason: String,
        /// The reason as a sentence.
        pub detail: String,
        pub quarantined_at: Timestamp = "quarantined_at_ms",
        /// The number of failed attempts to repair it.
        pub repair_attempts: u32,
        /// The time of the next attempt.
        pub next_repair_at: Timestamp = "next_repair_at_ms",
    }
}

/// Quarantines a market. Returns false, without a change, if it already is quarantined.
pub async fn insert(tx: &mut Tx, quarantine: &Quarantine) -> Result<bool, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO market_quarantine (",
        Quarantine::COLUMNS,
        ") VALUES (",
        Quarantine::PLACEHOLDERS,
        ") ON CONFLICT (market_id) DO NOTHING"
    );
    let is_new = tx.exec(SQL, &quarantine.values()?).await? == 1;
    if is_new {
        // The market's row has a copy of the time, so that reads of markets need no join.
        markets::put_quarantined(tx, quarantine.market_id, Some(quarantine.quarantined_at)).await?;
    }
    Ok(is_new)
}

/// Releases a market. Returns false if it was not quarantined.
pub async fn release(tx: &mut Tx, market_id: MarketId) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM market_quarantine WHERE market_id = $1";
    let was_quarantined = tx.exec(SQL, &params![market_id]).await? == 1;
    if was_quarantined {
        markets::put_quarantined(tx, market_id, None).await?;
    }
    Ok(was_quarantined)
}

/// Releases markets whose first unapplied event is in a block after `fork`, because that block is
/// no longer on the chain.
pub async fn release_after(tx: &mut Tx, fork: u64) -> Result<(), StoreError> {
    const SQL: &str = "SELECT market_id FROM market_quarantine WHERE block_number > $1";
    let released: Vec<MarketId> = tx.list(SQL, &[SqlValue::try_from(fork)?], |row| row.only()).await?;
    for id in released {
        release(tx, id).await?;
    }
    Ok(())
}

/// Stores the failure of a repair, and the time of the next attempt.
pub async fn note_failed_repair(
    tx: &mut Tx,
    market_id: MarketId,
    detail: &str,
    next_repair_at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE market_quarantine SET detail = $1, repair_attempts = repair_attempts + 1, next_repair_at_ms = $2
        WHERE market_id = $3";
    tx.exec(SQL, &params![detail, next_repair_at, market_id]).await.map(drop)
}

pub async fn find(tx: &mut Tx, market_id: MarketId) -> Result<Option<Quarantine>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Quarantine::COLUMNS,
        " FROM market_quarantine WHERE market_id = $1"
    );
    tx.find(SQL, &params![market_id], Quarantine::from_row).await
}

/// Lists all quarantined markets, at most `limit`, earliest repair first.
pub async fn list(tx: &mut Tx, limit: u32) -> Result<Vec<Quarantine>, StoreError> {
    list_due(tx, Timestamp::from_ms(i64::MAX), limit).await
}

/// Lists the quarantined markets whose repair is due, at most `limit`.
pub async fn list_due(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<Quarantine>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Quarantine::COLUMNS,
        " FROM market_quarantine WHERE next_repair_at_ms <= $1 ORDER BY next_repair_at_ms, market_id LIMIT $2"
    );
    tx.list(SQL, &params![now, limit], Quarantine::from_row).await
}

pub async fn count(tx: &mut Tx) -> Result<u64, StoreError> {
    const SQL: &str = "SELECT COUNT(*) AS count FROM market_quarantine";
    Ok(tx.find(SQL, &[], |row| row.only()).await?.unwrap_or_default())
}

/// Lists the hub numbers of a chain's quarantined markets.
pub async fn list_numbers(tx: &mut Tx, chain_id: u64) -> Result<Vec<u64>, StoreError> {
    const SQL: &str = "SELECT m.chain_market_id FROM market_quarantine q JOIN markets m ON m.id = q.market_id
        WHERE m.chain_id = $1 AND m.chain_market_id IS NOT NULL";
    tx.list(SQL, &[SqlValue::try_from(chain_id)?], |row| row.only()).await
}

/// Lists the quarantined markets in which a lane has validating trades.
pub async fn list_validating(tx: &mut Tx, lane: u16) -> Result<Vec<MarketId>, StoreError> {
    const SQL: &str = "SELECT market_id FROM market_quarantine q WHERE EXISTS (SELECT 1 FROM trades t
        WHERE t.lane = $1 AND t.status = 'validating' AND t.ended_at_ms IS NULL AND t.market_id = q.market_id)";
    tx.list(SQL, &params![lane], |row| row.only()).await
}

/// Excludes a block's events from the sync.
pub async fn skip_block(tx: &mut Tx, number: u64, reason: &str, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO skipped_blocks (number, reason, skipped_at_ms) VALUES ($1, $2, $3)
        ON CONFLICT (number) DO UPDATE SET reason = excluded.reason, skipped_at_ms = excluded.skipped_at_ms";
    tx.exec(SQL, &params![SqlValue::try_from(number)?, reason, now]).await.map(drop)
}

/// Lists the excluded blocks in `from..=to`.
pub async fn list_skipped_blocks(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<u64>, StoreError> {
    const SQL: &str =
        "SELECT number FROM skipped_blocks WHERE number >= $1 AND number <= $2 ORDER BY number LIMIT 10000";
    tx.list(SQL, &[SqlValue::try_from(from)?, SqlValue::try_from(to)?], |row| row.only()).await
}

/// Includes all excluded blocks from `from` on again.
pub async fn unskip_blocks_from(tx: &mut Tx, from: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM skipped_blocks WHERE number >= $1";
    tx.exec(SQL, &[SqlValue::try_from(from)?]).await.map(drop)
}

pub async fn count_up(tx: &mut Tx, name: &str, by: u64) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO sync_counters (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = sync_counters.value + excluded.value";
    if by == 0 {
        return Ok(());
    }
    tx.exec(SQL, &params![name, SqlValue::try_from(by)?]).await.map(drop)
}

pub async fn list_counters(tx: &mut Tx) -> Result<Vec<(String, u64)>, StoreError> {
    const SQL: &str = "SELECT name, value FROM sync_counters ORDER BY name LIMIT 100";
    tx.list(SQL, &[], |row| Ok((row.get("name")?, row.get("value")?))).await
}
