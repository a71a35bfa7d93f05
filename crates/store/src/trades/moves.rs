//! The moves of a trade: compare-and-sets on the old status that say what they found.

use domain::ids::{BatchId, TradeId};
use domain::trade::{State, Status, TraceEvent, Transition};
use domain::{Timestamp, Usdc};

use super::queue::next_rank;
use super::row::{COLUMNS, Trade, from_row};
use super::trace;
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
    let released =
        (given_back > Usdc::ZERO).then(|| TraceEvent::funds_released(given_back, to, transition.trace.at));
    let events = std::iter::once(&transition.trace).chain(&released);
    trace::append(tx, events.map(|event| (trade.id, event))).await?;
    usage::add_ended(tx, trade.key_id, at, &transition.to).await?;
    tx.emit(trade.event(&transition.to, at)?);
    Ok(Moved::Moved)
}

/// Makes the move of a held trade that was confirmed: it joins its lane's queue, and its intent gets the time that it has
/// from here on.
pub async fn release(
    tx: &mut Tx,
    trade: &Trade,
    transition: &Transition,
    deadline: Timestamp,
) -> Result<Moved, StoreError> {
    const SQL: &str = concat!(
        "UPDATE trades SET deadline_ms = $1, queue_rank = ",
        next_rank!("$2", "$3"),
        " WHERE id = $4"
    );
    let moved = apply(tx, trade, transition).await?;
    if moved == Moved::Moved {
        tx.exec(SQL, &params![deadline, trade.user_id, trade.lane, trade.id]).await?;
    }
    Ok(moved)
}

/// The held trades whose confirmation window is over at `now`, the first to end first, at most `limit`.
pub async fn list_unconfirmed(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM trades WHERE status = 'pending_confirmation' AND confirmation_expires_at_ms <= $1
        ORDER BY confirmation_expires_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![now, limit], from_row).await
}

/// What a trade holds of the daily cap after a move: what it really spent once completed, nothing once it has failed.
fn kept_reservation(trade: &Trade, to: &State) -> Usdc {
    match to {
        State::Failed(_) | State::Rejected(_) => Usdc::ZERO,
        State::Completed(settlement) if trade.reserved > Usdc::ZERO => settlement.usdc.min(trade.reserved),
        _ => trade.reserved,
    }
}

/// Gives validated trades their nonces and batch and moves them to `executing`; false where one is not validating.
/// `signed` is the event of the batch that carries them.
pub async fn assign_intent(
    tx: &mut Tx,
    intents: &[(&Trade, u32)],
    batch_id: BatchId,
    transition: &Transition,
    signed: &TraceEvent,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE trades SET status = 'executing', nonce = $1, batch_id = $2, updated_at_ms = $3,
        waiting_for = NULL WHERE id = $4 AND status = 'validating'";
    let rows: Vec<Vec<Value<'_>>> = intents
        .iter()
        .map(|(trade, nonce)| params![*nonce, batch_id, transition.trace.at, trade.id].to_vec())
        .collect();
    let moved = tx.exec_each(SQL, &rows).await?;
    let executing =
        |nonce: u32| transition.trace.clone().with("nonce", nonce).with("batchId", batch_id.to_string());
    let executing: Vec<_> = intents.iter().map(|(trade, nonce)| (trade.id, executing(*nonce))).collect();
    trace::append(tx, executing.iter().flat_map(|(id, event)| [(*id, event), (*id, signed)])).await?;
    for (trade, _) in intents {
        tx.emit(trade.event(&transition.to, transition.trace.at)?);
    }
    Ok(moved.iter().all(|affected| *affected == 1))
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

/// Puts executing trades into another batch, whose event is `signed`.
pub async fn set_batch(
    tx: &mut Tx,
    trades: &[TradeId],
    batch_id: BatchId,
    signed: &TraceEvent,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE trades SET batch_id = $1 WHERE id = $2 AND status = 'executing'";
    let rows: Vec<Vec<Value<'_>>> = trades.iter().map(|id| params![batch_id, *id].to_vec()).collect();
    let moved = tx.exec_each(SQL, &rows).await?;
    let moved = trades.iter().zip(moved).filter(|(_, affected)| *affected == 1);
    trace::append(tx, moved.map(|(id, _)| (*id, signed))).await
}

/// Takes the trades of a batch that will never be mined out of it, those that are still executing. `lost` is the event
/// that tells them.
pub async fn clear_batch(tx: &mut Tx, batch_id: BatchId, lost: &TraceEvent) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE trades SET batch_id = NULL WHERE batch_id = $1 AND status = 'executing' RETURNING id";
    let cleared: Vec<TradeId> = tx.list(SQL, &params![batch_id], |row| row.parse(0)).await?;
    trace::append(tx, cleared.into_iter().map(|id| (id, lost))).await
}

/// Takes one executing trade out of a batch that has not carried it. `lost` is the event that tells it.
pub async fn leave_batch(
    tx: &mut Tx,
    id: TradeId,
    batch_id: BatchId,
    lost: &TraceEvent,
) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE trades SET batch_id = NULL WHERE id = $1 AND batch_id = $2 AND status = 'executing'";
    if tx.exec(SQL, &params![id, batch_id]).await? == 1 {
        trace::append(tx, std::iter::once((id, lost))).await?;
    }
    Ok(())
}

/// When the trade that has been executing for longest began to.
pub async fn find_oldest_executing(tx: &mut Tx) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str =
        "SELECT MIN(updated_at_ms) FROM trades WHERE status = 'executing' AND ended_at_ms IS NULL";
    Ok(tx.find(SQL, &[], |row| row.opt_timestamp(0)).await?.flatten())
}

/// The executing trades whose batch ended before `before`, at most `limit`, the oldest first.
pub async fn list_stuck(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<Vec<TradeId>, StoreError> {
    const SQL: &str = "SELECT t.id FROM trades t JOIN batches b ON b.id = t.batch_id
        WHERE t.status = 'executing' AND t.ended_at_ms IS NULL AND b.ended_at_ms < $1
        ORDER BY t.created_at_ms, t.id LIMIT $2";
    tx.list(SQL, &params![before, limit], |row| row.parse(0)).await
}

/// Adds an event to the traces of a batch's trades that are still executing. The update that changes nothing locks
/// their rows, so that no other event takes the same number.
pub async fn trace_batch(tx: &mut Tx, batch_id: BatchId, event: &TraceEvent) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE trades SET batch_id = batch_id WHERE batch_id = $1 AND status = 'executing' RETURNING id";
    let carried: Vec<TradeId> = tx.list(SQL, &params![batch_id], |row| row.parse(0)).await?;
    trace::append(tx, carried.into_iter().map(|id| (id, event))).await
}

/// Takes the nonce away from an executing trade whose intent never ran, because another intent had used the nonce: the
/// trade is signed again with another one. False if the trade has moved, has another nonce, or had its nonce replaced once
/// before.
pub async fn renew(tx: &mut Tx, id: TradeId, nonce: u32, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str =
        "UPDATE trades SET replaced_nonce = nonce, nonce = NULL, batch_id = NULL, updated_at_ms = $1
        WHERE id = $2 AND status = 'executing' AND nonce = $3 AND replaced_nonce IS NULL";
    if tx.exec(SQL, &params![at, id, nonce]).await? == 0 {
        return Ok(false);
    }
    trace::append(tx, std::iter::once((id, &TraceEvent::intent_renewed(at)))).await?;
    Ok(true)
}

/// Gives a renewed trade its nonce; false if it has moved.
pub async fn put_renewed_nonce(tx: &mut Tx, id: TradeId, nonce: u32) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE trades SET nonce = $1 WHERE id = $2 AND status = 'executing' AND nonce IS NULL";
    Ok(tx.exec(SQL, &params![nonce, id]).await? == 1)
}
