//! Recoveries. A recovery is opened when the chain has trades that the database lacks. While one is
//! open, no lane signs anything.

use domain::Timestamp;

use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Recovery {
        pub id: i64,
        /// The reason as a short code.
        pub reason: String,
        /// The reason as a sentence.
        pub detail: String,
        /// The first block whose trades are compared with the tables.
        pub from_block: u64,
        /// The last such block, once it is known.
        pub until_block: Option<u64>,
        /// The generation of the event feed that this recovery started.
        pub generation: Option<u64>,
        /// The condition that the recovery waits for.
        pub waits_for: Option<String>,
        pub changes: Changes = ..,
        /// The time at which it was opened.
        pub detected_at: Timestamp = "detected_at_ms",
        pub ended_at: Option<Timestamp> = "ended_at_ms",
    }
}

record! {
    /// The number of rows that a recovery changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Changes {
        /// Trades that were restored from the chain.
        pub recovered_trades: u64,
        /// Trades whose stored end differed from the chain's.
        pub corrected_trades: u64,
        /// Keys whose stored next nonce was already used on chain.
        pub raised_nonces: u64,
        /// Trades on chain whose user or key is unknown.
        pub unattributed_trades: u64,
    }
}

/// The reason to open a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// A short code.
    pub reason: &'static str,
    /// A sentence.
    pub detail: String,
    /// The first block whose trades are compared with the tables.
    pub from_block: u64,
}

/// Opens a recovery unless one is open. Returns whether it did.
pub async fn open(tx: &mut Tx, opening: &Opening, now: Timestamp) -> Result<bool, StoreError> {
    const LANES: &str = "UPDATE leases SET epoch = epoch WHERE name LIKE 'executor:%'";
    // SQLite needs the `WHERE true` to parse `ON CONFLICT` after a SELECT.
    const OPEN: &str =
        "INSERT INTO recoveries (id, open_slot, reason, detail, from_block, recovered_trades, corrected_trades,
        raised_nonces, unattributed_trades, detected_at_ms)
        SELECT COALESCE(MAX(id), 0) + 1, 1, $1, $2, $3, 0, 0, 0, 0, $4 FROM recoveries WHERE true
        ON CONFLICT DO NOTHING";
    // Lock the lanes' leases: this waits for transactions that are signing now. Every later one
    // checks for an open recovery before it signs.
    tx.exec(LANES, &[]).await?;
    let from_block = SqlValue::try_from(opening.from_block)?;
    Ok(tx.exec(OPEN, &params![opening.reason, &opening.detail, from_block, now]).await? == 1)
}

/// Returns the open recovery.
pub async fn find_open(tx: &mut Tx) -> Result<Option<Recovery>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Recovery::COLUMNS, " FROM recoveries WHERE open_slot = 1");
    tx.find(SQL, &[], Recovery::from_row).await
}

/// Reports whether a recovery is open.
pub async fn is_open(tx: &mut Tx) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM recoveries WHERE open_slot = 1";
    tx.exists(SQL, &[]).await
}

pub async fn find(tx: &mut Tx, id: i64) -> Result<Option<Recovery>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Recovery::COLUMNS, " FROM recoveries WHERE id = $1");
    tx.find(SQL, &params![id], Recovery::from_row).await
}

/// Stores the condition that a recovery waits for.
pub async fn put_waits_for(tx: &mut Tx, id: i64, waits_for: Option<&str>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE recoveries SET waits_for = $1 WHERE id = $2 AND ended_at_ms IS NULL";
    tx.exec(SQL, &params![waits_for, id]).await.map(drop)
}

/// Stores the last block whose trades are compared, unless it is already known.
pub async fn put_until_block(tx: &mut Tx, id: i64, block: u64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE recoveries SET until_block = $1 WHERE id = $2 AND until_block IS NULL";
    tx.exec(SQL, &params![SqlValue::try_from(block)?, id]).await.map(drop)
}

/// Starts a new generation of the event feed, once per recovery.
pub async fn begin_generation(tx: &mut Tx, id: i64, now: Timestamp) -> Result<(), StoreError> {
    const LOCK: &str = "UPDATE recoveries SET generation = generation WHERE id = $1 AND generation IS NULL";
    const NOTE: &str = "UPDATE recoveries SET generation = $1 WHERE id = $2";
    if tx.exec(LOCK, &params![id]).await? == 0 {
        return Ok(());
    }
    let generation = crate::events::begin_generation(tx, now).await?;
    tx.exec(NOTE, &params![SqlValue::try_from(generation)?, id]).await.map(drop)
}

/// Adds to the number of rows that a recovery changed.
pub async fn add_changes(tx: &mut Tx, id: i64, changes: Changes) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE recoveries SET recovered_trades = recovered_trades + $1,
        corrected_trades = corrected_trades + $2, raised_nonces = raised_nonces + $3 WHERE id = $4";
    // The number of unattributed trades is set once, when the recovery ends.
    let Changes { recovered_trades, corrected_trades, raised_nonces, unattributed_trades: _ } = changes;
    let bound = [
        SqlValue::try_from(recovered_trades)?,
        SqlValue::try_from(corrected_trades)?,
        SqlValue::try_from(raised_nonces)?,
        SqlValue::from(id),
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

/// Ends a recovery. Returns false if it was not open.
pub async fn end(tx: &mut Tx, id: i64, unattributed: u64, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE recoveries SET open_slot = NULL, waits_for = NULL, ended_at_ms = $1,
        unattributed_trades = $2 WHERE id = $3 AND open_slot = 1";
    Ok(tx.exec(SQL, &params![now, SqlValue::try_from(unattributed)?, id]).await? == 1)
}
