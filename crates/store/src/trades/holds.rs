//! Trades that wait for a condition outside of themselves before they are signed.

use domain::ids::TradeId;
use domain::trade::{HoldReason, Status, TraceEvent};
use domain::{Timestamp, Usdc};

use super::trace;
use crate::{StoreError, Tx, params};

/// Marks trades as waiting for `reason`, unless they are marked so already. Their rows say what they wait for, and their traces
/// since when.
pub async fn hold(tx: &mut Tx, ids: &[TradeId], reason: HoldReason, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE trades SET waiting_for = $1 WHERE id = $2 AND status IN ('pending', 'validating')
        AND (waiting_for IS NULL OR waiting_for <> $1) RETURNING status";
    for id in ids {
        let status: Option<Status> = tx.find(SQL, &params![reason.as_str(), *id], |row| row.parse(0)).await?;
        if let Some(status) = status {
            trace::append(tx, std::iter::once((*id, &TraceEvent::held(reason, status, at)))).await?;
        }
    }
    Ok(())
}

/// Corrects how much a trade that is being validated would move.
pub async fn put_volume(tx: &mut Tx, id: TradeId, volume: Usdc) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE trades SET volume_usdc_atomic = $1 WHERE id = $2 AND status = 'validating'";
    tx.exec(SQL, &params![volume, id]).await.map(drop)
}

/// The USDC that a lane's signed trades may move whose blocks are not settled.
pub async fn sum_signed(tx: &mut Tx, lane: u16) -> Result<Usdc, StoreError> {
    const SQL: &str =
        "SELECT CAST(COALESCE(SUM(volume_usdc_atomic), 0) AS BIGINT) FROM trades WHERE lane = $1
        AND status = 'executing' AND ended_at_ms IS NULL AND batch_id IS NOT NULL";
    Ok(tx.find(SQL, &params![lane], |row| row.usdc(0)).await?.unwrap_or_default())
}

/// The USDC of a lane's trades that are about to be signed.
pub async fn sum_validating(tx: &mut Tx, lane: u16) -> Result<Usdc, StoreError> {
    const SQL: &str =
        "SELECT CAST(COALESCE(SUM(volume_usdc_atomic), 0) AS BIGINT) FROM trades WHERE lane = $1
        AND status = 'validating' AND ended_at_ms IS NULL AND waiting_for IS NULL";
    Ok(tx.find(SQL, &params![lane], |row| row.usdc(0)).await?.unwrap_or_default())
}

/// How many trades wait for each reason, of those that are not signed.
pub async fn count_held(tx: &mut Tx) -> Result<Vec<(HoldReason, u64)>, StoreError> {
    const SQL: &str = "SELECT waiting_for, COUNT(*) FROM trades
        WHERE waiting_for IS NOT NULL AND nonce IS NULL AND ended_at_ms IS NULL GROUP BY waiting_for";
    tx.list(SQL, &[], |row| Ok((row.parse(0)?, row.number(1)?))).await
}
