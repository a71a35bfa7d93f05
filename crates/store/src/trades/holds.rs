//! Trades that wait for an external condition before they are signed.

use domain::ids::TradeId;
use domain::trade::{HoldReason, Status, TraceEvent};
use domain::{Timestamp, Usdc};

use super::trace;
use crate::{StoreError, Tx, params};

/// Marks trades as waiting for `reason` and adds that to their traces. Trades that already wait for
/// this reason are unchanged.
pub async fn hold(tx: &mut Tx, ids: &[TradeId], reason: HoldReason, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE trades SET waiting_for = $1 WHERE id = $2 AND status IN ('pending', 'validating')
        AND (waiting_for IS NULL OR waiting_for <> $1) RETURNING status";
    for id in ids {
        let status: Option<Status> = tx.find(SQL, &params![reason.as_str(), *id], |row| row.only()).await?;
        if let Some(status) = status {
            trace::append(tx, std::iter::once((*id, &TraceEvent::held(reason, status, at)))).await?;
        }
    }
    Ok(())
}

/// Corrects the volume of a trade that is being validated.
pub async fn put_volume(tx: &mut Tx, id: TradeId, volume: Usdc) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE trades SET volume_usdc_atomic = $1 WHERE id = $2 AND status = 'validating'";
    tx.exec(SQL, &params![volume, id]).await.map(drop)
}

/// Returns the USDC volume of a lane's signed trades that are not settled yet.
pub async fn sum_signed(tx: &mut Tx, lane: u16) -> Result<Usdc, StoreError> {
    const SQL: &str =
        "SELECT CAST(COALESCE(SUM(volume_usdc_atomic), 0) AS BIGINT) AS volume_usdc_atomic FROM trades WHERE lane = $1
        AND status = 'executing' AND ended_at_ms IS NULL AND batch_id IS NOT NULL";
    Ok(tx.find(SQL, &params![lane], |row| row.only()).await?.unwrap_or_default())
}

/// Counts the unsigned trades that wait, by reason.
pub async fn count_held(tx: &mut Tx) -> Result<Vec<(HoldReason, u64)>, StoreError> {
    const SQL: &str = "SELECT waiting_for, COUNT(*) AS count FROM trades
        WHERE waiting_for IS NOT NULL AND nonce IS NULL AND ended_at_ms IS NULL GROUP BY waiting_for";
    tx.list(SQL, &[], |row| Ok((row.get("waiting_for")?, row.get("count")?))).await
}
