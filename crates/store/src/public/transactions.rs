//! What a transaction did here.

use domain::ids::MarketId;

use crate::movements::Movement;
use crate::{StoreError, Tx, params};

/// What a transaction did here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionRows {
    /// The positions that it moved, in the chain's order. At most 1,000.
    pub movements: Vec<Movement>,
    /// The markets that it settled, by their ids.
    pub settled: Vec<MarketId>,
}

/// What the transaction of this hash (lower-case hex) did; `None` where it did nothing here.
pub async fn find_transaction(tx: &mut Tx, hash: &str) -> Result<Option<TransactionRows>, StoreError> {
    const SETTLED: &str =
        "SELECT id FROM markets WHERE resolution_tx_hash = $1 AND chain_market_id IS NOT NULL
        ORDER BY id LIMIT 1000";
    let movements = crate::movements::list_of_transaction(tx, hash).await?;
    let settled = tx.list(SETTLED, &params![hash], |row| row.parse(0)).await?;
    let is_known = !movements.is_empty() || !settled.is_empty();
    Ok(is_known.then_some(TransactionRows { movements, settled }))
}
