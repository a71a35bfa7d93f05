//! Recoveries: the database was found to lack trades that the chain knows. While a recovery is open no lane signs anything.

use domain::Timestamp;

use crate::{Row, StoreError, Tx, Value, params};

/// A recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Its number.
    pub id: i64,
    /// Why it was opened, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub detail: String,
    /// The first block whose trades are compared with the tables.
    pub from_block: u64,
    /// The last one, once it is known.
    pub until_block: Option<u64>,
    /// The generation of the event feed that it began.
    pub generation: Option<u64>,
    /// What it waits for.
    pub waits_for: Option<String>,
    /// What it has changed.
    pub changes: Changes,
    /// When it was opened.
    pub detected_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// What a recovery has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Trades that were written again from the chain.
    pub recovered_trades: u64,
    /// Trades that were there and had not the end that the chain gave them.
    pub corrected_trades: u64,
    /// Keys whose next nonce the chain had used.
    pub raised_nonces: u64,
    /// Trades on chain whose user or key is not in the database.
    pub unattributed_trades: u64,
}

/// Why a recovery is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// In a word.
    pub reason: &'static str,
    /// In a sentence.
    pub detail: String,
    /// The first block whose trades are compared with the tables.
    pub from_block: u64,
}

const COLUMNS: &str = "id, reason, detail, from_block, until_block, generation, waits_for, recovered_trades,
    corrected_trades, raised_nonces, unattributed_trades, detected_at_ms, ended_at_ms";

fn from_row(row: &Row<'_>) -> Result<Recovery, StoreError> {
    Ok(Recovery {
        id: row.int(0)?,
        reason: row.text(1)?,
        detail: row.text(2)?,
        from_block: row.number(3)?,
        until_block: row.opt_number(4)?,
        generation: row.opt_number(5)?,
        waits_for: row.opt_text(6)?,
        changes: Changes {
            recovered_trades: row.number(7)?,
            corrected_trades: row.number(8)?,
            raised_nonces: row.number(9)?,
            unattributed_trades: row.number(10)?,
        },
        detected_at: row.timestamp(11)?,
        ended_at: row.opt_timestamp(12)?,
    })
}

/// Opens a recovery unless one is open; whether it did. Waits for the lanes' transactions that are under way: what they
/// sign afterwards checks for the recovery first.
pub async fn open(tx: &mut Tx, opening: &Opening, now: Timestamp) -> Result<bool, StoreError> {
    const LANES: &str = "UPDATE leases SET epoch = epoch WHERE name LIKE 'executor:%'";
    const OPEN: &str =
        "INSERT INTO recoveries (id, open_slot, reason, detail, from_block, recovered_trades, corrected_trades,
        raised_nonces, unattributed_trades, detected_at_ms)
        SELECT COALESCE(MAX(id), 0) + 1, 1, $1, $2, $3, 0, 0, 0, 0, $4 FROM recoveries WHERE true
        ON CONFLICT DO NOTHING";
    tx.exec(LANES, &[]).await?;
    let from_block = Value::try_from(opening.from_block)?;
    Ok(tx.exec(OPEN, &params![opening.reason, &opening.detail, from_block, now]).await? == 1)
}

/// The recovery that is open.
pub async fn find_open(tx: &mut Tx) -> Result<Option<Recovery>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM recoveries WHERE open_slot = 1");
    tx.find(SQL, &[], from_row).await
}

/// Whether a recovery is open.
pub async fn is_open(tx: &mut Tx) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM recoveries WHERE open_slot = 1";
    Ok(tx.find(SQL, &[], |row| row.int(0)).await?.is_some())
}

/// The recovery with this number.
pub async fn find(tx: &mut Tx, id: i64) -> Result<Option<Recovery>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM recoveries WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// Notes what a recovery waits for.
pub async fn put_waits_for(tx: &mut Tx, id: i64, waits_for: Option<&str>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE recoveries SET waits_for = $1 WHERE id = $2 AND ended_at_ms IS NULL";
    tx.exec(SQL, &params![waits_for, id]).await.map(drop)
}

/// Notes the last block whose trades are compared, unless it is known.
pub async fn put_until_block(tx: &mut Tx, id: i64, block: u64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE recoveries SET until_block = $1 WHERE id = $2 AND until_block IS NULL";
    tx.exec(SQL, &params![Value::try_from(block)?, id]).await.map(drop)
}

/// Begins a new generation of the event feed for a recovery, once.
pub async fn begin_generation(tx: &mut Tx, id: i64, now: Timestamp) -> Result<(), StoreError> {
    const LOCK: &str = "UPDATE recoveries SET generation = generation WHERE id = $1 AND generation IS NULL";
    const NOTE: &str = "UPDATE recoveries SET generation = $1 WHERE id = $2";
    if tx.exec(LOCK, &params![id]).await? == 0 {
        return Ok(());
    }
    let generation = crate::events::begin_generation(tx, now).await?;
    tx.exec(NOTE, &params![Value::try_from(generation)?, id]).await.map(drop)
}

/// Adds to what a recovery has changed.
pub async fn add_changes(tx: &mut Tx, id: i64, changes: Changes) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE recoveries SET recovered_trades = recovered_trades + $1,
        corrected_trades = corrected_trades + $2, raised_nonces = raised_nonces + $3 WHERE id = $4";
    let Changes { recovered_trades, corrected_trades, raised_nonces, unattributed_trades: _ } = changes;
    let bound = [
        Value::try_from(recovered_trades)?,
        Value::try_from(corrected_trades)?,
        Value::try_from(raised_nonces)?,
        Value::from(id),
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

/// Ends a recovery; whether it was open.
pub async fn end(tx: &mut Tx, id: i64, unattributed: u64, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE recoveries SET open_slot = NULL, waits_for = NULL, ended_at_ms = $1,
        unattributed_trades = $2 WHERE id = $3 AND open_slot = 1";
    Ok(tx.exec(SQL, &params![now, Value::try_from(unattributed)?, id]).await? == 1)
}
