//! The moves of a trade: compare-and-sets on the old status that say what they found.

use domain::Usdc;
use domain::ids::{BatchId, TradeId};
use domain::trade::{State, Status, TraceEvent, Transition};

use super::row::{COLUMNS, Trade, from_row};
use crate::{StoreError, Tx, Value, keys, params, usage, users};

/// What a compare-and-set found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// The trade stood where it had to and has moved.
    Moved,
    /// The trade stands elsewhere; nothing was written.
    Stale {
        /// Where it stands.
        current: Status,
    },
}

/// Makes a move: status, what the new state carries, the trace's event, and what the trade held of cap and balance.
pub async fn apply(tx: &mut Tx, trade: &Trade, transition: &Transition) -> Result<Moved, StoreError> {
    const SQL: &str = "UPDATE trades SET status = $1, tx_hash = $2, block_number = $3, tokens_moved_wad = $4,
        usdc_moved_atomic = $5, fee_atomic = $6, error_code = $7, error_message = $8, updated_at_ms = $9,
        ended_at_ms = $10, reserved_usdc_atomic = $11 WHERE id = $12 AND status = $13";
    let to = transition.to.status();
    let at = transition.trace.at;
    let kept = kept_reservation(trade, &transition.to);
    let (settlement, failure, refusal) = match &transition.to {
        State::Completed(settlement) => (Some(settlement), None, None),
        State::Failed(failure) => (None, Some(failure), None),
        State::Rejected(refusal) => (None, None, Some(refusal)),
        _ => (None, None, None),
    };
    let tx_hash =
        settlement.map(|s| s.tx_hash).or(failure.and_then(|f| f.tx_hash)).map(|hash| hash.to_string());
    let error_code = failure.map(|f| f.code.as_str()).or(refusal.map(|r| r.reason.as_str()));
    let error_message = failure.map(|f| f.message.as_str()).or(refusal.map(|r| r.reason.message()));
    let bound = params![
        to.as_str(),
        tx_hash,
        settlement.map(|s| Value::try_from(s.block_number)).transpose()?,
        settlement.map(|s| s.tokens),
        settlement.map(|s| s.usdc),
        settlement.map(|s| s.fee),
        error_code,
        error_message,
        at,
        to.is_terminal().then_some(at),
        kept,
        trade.id,
        transition.from.as_str()
    ];
    if tx.exec(SQL, &bound).await? == 0 {
        let found = super::find_any(tx, trade.id).await?.ok_or_else(|| StoreError::missing("trades"))?;
        return Ok(Moved::Stale { current: found.state.status() });
    }
    // The key's row before the account's, as at creation: two transactions then never wait for each other.
    let given_back = trade.reserved.saturating_sub(kept);
    if given_back > Usdc::ZERO {
        keys::give_back_spent(tx, trade.key_id, given_back, trade.created_at).await?;
    }
    if to.is_terminal() && trade.reserved > Usdc::ZERO {
        users::release(tx, trade.user_id, trade.reserved).await?;
    }
    usage::add_ended(tx, trade.key_id, at, &transition.to).await?;
    append_trace(tx, trade.id, &transition.trace).await?;
    Ok(Moved::Moved)
}

/// What a trade holds of the daily cap after a move: what it really spent once completed, nothing once it has failed.
fn kept_reservation(trade: &Trade, to: &State) -> Usdc {
    match to {
        State::Failed(_) | State::Rejected(_) => Usdc::ZERO,
        State::Completed(settlement) if trade.reserved > Usdc::ZERO => settlement.usdc.min(trade.reserved),
        _ => trade.reserved,
    }
}

/// The oldest pending trades of a lane, at most `limit`, moved to `validating` by the transition that `validate` gives.
pub async fn claim_pending(
    tx: &mut Tx,
    lane: u16,
    limit: u32,
    transition: &Transition,
) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE trades SET status = 'validating', updated_at_ms = $1 WHERE id IN (
            SELECT id FROM trades WHERE lane = $2 AND status = 'pending' AND ended_at_ms IS NULL
            ORDER BY created_at_ms, id LIMIT $3) AND status = 'pending' RETURNING ",
        COLUMNS
    );
    let mut claimed = tx.list(SQL, &params![transition.trace.at, lane, limit], from_row).await?;
    claimed.sort_by_key(|trade| (trade.created_at, trade.id));
    append_traces(tx, claimed.iter().map(|trade| trade.id), &transition.trace).await?;
    Ok(claimed)
}

/// Gives a validated trade its nonce and batch and moves it to `executing`; false where it is not validating.
pub async fn assign_intent(
    tx: &mut Tx,
    intents: &[(TradeId, u32)],
    batch_id: BatchId,
    transition: &Transition,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE trades SET status = 'executing', nonce = $1, batch_id = $2, updated_at_ms = $3
        WHERE id = $4 AND status = 'validating'";
    let rows: Vec<Vec<Value<'_>>> = intents
        .iter()
        .map(|(id, nonce)| params![*nonce, batch_id, transition.trace.at, *id].to_vec())
        .collect();
    let moved = tx.exec_each(SQL, &rows).await?;
    append_traces(tx, intents.iter().map(|(id, _)| *id), &transition.trace).await?;
    Ok(moved.iter().all(|affected| *affected == 1))
}

/// The validating trades of a lane: what a process that died left behind between claiming and signing.
pub async fn list_validating(tx: &mut Tx, lane: u16, limit: u32) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM trades WHERE lane = $1 AND status = 'validating' AND ended_at_ms IS NULL
        ORDER BY created_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![lane, limit], from_row).await
}

/// The executing trades of a lane whose batch is gone without having carried them: to be signed again, as the very same
/// intents.
pub async fn list_unbatched(tx: &mut Tx, lane: u16, limit: u32) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM trades WHERE lane = $1 AND status = 'executing' AND batch_id IS NULL
        AND ended_at_ms IS NULL ORDER BY created_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![lane, limit], from_row).await
}

/// Puts executing trades into another batch.
pub async fn set_batch(tx: &mut Tx, trades: &[TradeId], batch_id: BatchId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE trades SET batch_id = $1 WHERE id = $2 AND status = 'executing'";
    let rows: Vec<Vec<Value<'_>>> = trades.iter().map(|id| params![batch_id, *id].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Takes the trades of a batch that will never be mined out of it, those that are still executing.
pub async fn clear_batch(tx: &mut Tx, batch_id: BatchId) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE trades SET batch_id = NULL WHERE batch_id = $1 AND status = 'executing'";
    tx.exec(SQL, &params![batch_id]).await
}

/// The first event of a new trade's trace has number 1; those of its moves follow.
pub(super) async fn insert_trace(
    tx: &mut Tx,
    id: TradeId,
    seq: i64,
    event: &TraceEvent,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO trace_events (trade_id, seq, stage, kind, status, at_ms, attributes)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let attributes =
        serde_json::to_string(&event.attributes).map_err(|error| StoreError::unwritable(&error))?;
    let bound =
        params![id, seq, event.stage.as_str(), event.kind, event.status.as_str(), event.at, attributes];
    tx.exec(SQL, &bound).await.map(drop)
}

async fn append_trace(tx: &mut Tx, id: TradeId, event: &TraceEvent) -> Result<(), StoreError> {
    append_traces(tx, [id].into_iter(), event).await
}

async fn append_traces(
    tx: &mut Tx,
    ids: impl Iterator<Item = TradeId>,
    event: &TraceEvent,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO trace_events (trade_id, seq, stage, kind, status, at_ms, attributes)
        SELECT $1, COALESCE(MAX(seq), 0) + 1, $2, $3, $4, $5, $6 FROM trace_events WHERE trade_id = $1";
    let attributes =
        serde_json::to_string(&event.attributes).map_err(|error| StoreError::unwritable(&error))?;
    let rows: Vec<Vec<Value<'_>>> = ids
        .map(|id| {
            let status = event.status.as_str();
            params![id, event.stage.as_str(), event.kind, status, event.at, &attributes].to_vec()
        })
        .collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Whether a lane has trades that wait to be signed.
pub async fn has_work(tx: &mut Tx, lane: u16) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM trades WHERE lane = $1 AND ended_at_ms IS NULL
        AND (status IN ('pending', 'validating') OR (status = 'executing' AND batch_id IS NULL)) LIMIT 1";
    Ok(tx.find(SQL, &params![lane], |row| row.int(0)).await?.is_some())
}
