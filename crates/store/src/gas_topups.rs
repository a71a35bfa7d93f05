//! Native currency that the gas treasury sends to executors.

use alloy_primitives::{Address, B256};
use domain::Timestamp;
use domain::ids::BatchId;

use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// A payment to an executor.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct GasTopup: Insert {
        /// Like a batch, it is a transaction of the service.
        pub id: BatchId,
        pub lane: u16,
        pub executor: Address,
        pub wei: u128,
        /// The payment with the most that its transaction can cost.
        pub spent_wei: u128,
        pub created_at: Timestamp = "created_at_ms",
    }
}

/// Inserts a payment before it is sent.
pub async fn insert(tx: &mut Tx, topup: &GasTopup) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO gas_topups (",
        GasTopup::COLUMNS,
        ") VALUES (",
        GasTopup::PLACEHOLDERS,
        ")"
    );
    tx.exec(SQL, &topup.values()?).await.map(drop)
}

/// Stores the transaction of a payment that was mined.
pub async fn put_tx_hash(tx: &mut Tx, id: BatchId, tx_hash: B256) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE gas_topups SET tx_hash = $1 WHERE id = $2";
    tx.exec(SQL, &params![tx_hash, id]).await.map(drop)
}

/// Returns the wei that payments after `since` may have cost.
pub async fn sum_spent(tx: &mut Tx, since: Timestamp) -> Result<u128, StoreError> {
    const SQL: &str = "SELECT spent_wei FROM gas_topups WHERE created_at_ms > $1";
    // Added here, because the sum can be above what the database's integers hold.
    let spent: Vec<u128> = tx.list(SQL, &params![since], |row| row.only()).await?;
    Ok(spent.into_iter().fold(0, u128::saturating_add))
}
