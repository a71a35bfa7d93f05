//! The gas that executors need.

use chain::Fees;

/// The gas that a batch of 100 trades uses. Its limit is higher.
const FULL_BATCH_USES: u128 = 4_000_000;

/// Returns the wei that a batch of 100 trades costs now.
pub const fn batch_cost(fees: Fees) -> u128 {
    FULL_BATCH_USES.saturating_mul(fees.price())
}
