//! Effects of a transaction on markets of this service.

use alloy_primitives::B256;
use domain::ids::MarketId;

use crate::movements::Movement;
use crate::{StoreError, Tx, params};

/// The effects of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionRows {
    /// Movements in chain order, at most 1,000.
    pub movements: Vec<Movement>,
    /// The markets that it settled, sorted by id.
    pub settled: Vec<MarketId>,
}

/// Returns the effects of the transaction with this hash. `None` if it had none.
pub async fn find_transaction(tx: &mut Tx, hash: B256) -> Result<Option<TransactionRows>, StoreError> {
    const SETTLED: &str =
        "SELECT id FROM markets WHERE resolution_tx_hash = $1 AND chain_market_id IS NOT NULL
        ORDER BY id LIMIT 1000";
    let movements = crate::movements::list_of_transaction(tx, hash).await?;
    let settled = tx.list(SETTLED, &params![hash], |row| row.only()).await?;
    let is_known = !movements.is_empty() || !settled.is_empty();
    Ok(is_known.then_some(TransactionRows { movements, settled }))
}
