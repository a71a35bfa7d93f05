//! Completes claims from final events, no matter which transaction paid them.

use domain::Timestamp;
use store::Tx;

use crate::AppError;

/// Completes the open claims that the final blocks `from..=to` have paid. Returns how many.
///
/// The caller records the settled block in the same transaction, so that each event is counted
/// once.
pub async fn settle(tx: &mut Tx, from: u64, to: u64, now: Timestamp) -> Result<usize, AppError> {
    let mut completed = 0;
    for payment in store::redemptions::list_payments(tx, from, to).await? {
        completed += usize::from(store::redemptions::complete(tx, &payment, now).await?);
    }
    Ok(completed)
}
