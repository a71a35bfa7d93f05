//! Status changes of trades. Each is a compare-and-set on the old status and reports whether it
//! took effect.

use domain::ids::{BatchId, TradeId};
use domain::trade::{State, Status, TraceEvent, Transition};
use domain::{Timestamp, Usdc};

use super::queue::next_rank;
use super::row::Trade;
use super::trace;
use crate::record::Record;
use crate::{SqlValue, StoreError, Tx, keys, params, usage, users};

/// The result of a compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// The trade had the expected status and was changed.
    Moved,
    /// The trade has a different status. Nothing was written.
    Stale { current: Status },
}

/// Applies a transition: updates the status and its data, appends the trace event, and releases
/// what the trade no longer needs of the cap and the balance.
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
    let tx_hash = settlement.map(|s| s.tx_hash).or(failure.and_then(|f| f.tx_hash));
    let error_code = failure.map(|f| f.code.as_str()).or(refusal.map(|r| r.reason.as_str()));
    let error_message = failure.map(|f| f.message.as_str()).or(refusal.map(|r| r.reason.message()));
    let bound = params![
        to.as_str(),
        tx_hash,
        settlement.map(|s| SqlValue::try_from(s.block_number)).transpose()?,
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
    // Lock the key's row before the account's, in the same order as at creation, to avoid
    // deadlocks.
    let given_back = trade.reserved.saturating_sub(kept);
    if given_back > Usdc::ZERO {
        keys::give_back_spent(tx, trade.key_id, given_back, trade.created_at).await?;
    }
    if to.is_terminal() && trade.reserved > Usdc::ZERO {
        users::release_reservation(tx, trade.user_id, trade.reserved).await?;
    }
    let released =
        (given_back > Usdc::ZERO).then(|| TraceEvent::funds_released(given_back, to, transition.trace.at));
    let events = std::iter::once(&transition.trace).chain(&released);
    trace::append(tx, events.map(|event| (trade.id, event))).await?;
    usage::add_ended(tx, trade.key_id, at, &transition.to).await?;
    tx.emit(trade.event(&transition.to, at)?);
    tx.note_trade(trade.moved_to(to, at));
    Ok(Moved::Moved)
}

/// Applies the transition of a held trade that was confirmed. The trade joins its lane's queue, and
/// its intent gets a new deadline.
pub async fn enqueue_confirmed(
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

/// Lists the held trades whose confirmation window has ended at `now`, earliest end first, at most
/// `limit`.
pub async fn list_unconfirmed(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Trade::COLUMNS,
        " FROM trades WHERE status = 'pending_confirmation' AND confirmation_expires_at_ms <= $1
        ORDER BY confirmation_expires_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![now, limit], Trade::from_row).await
}

/// The part of the daily cap that a trade still uses after a transition: what it spent if it
/// completed, nothing if it failed.
fn kept_reservation(trade: &Trade, to: &State) -> Usdc {
    match to {
        State::Failed(_) | State::Rejected(_) => Usdc::ZERO,
        // A sell reserves nothing, and a buy may spend less than it reserved.
        State::Completed(settlement) if trade.reserved > Usdc::ZERO => settlement.usdc.min(trade.reserved),
        _ => trade.reserved,
    }
}

/// Assigns nonces and a batch to validated trades and moves them to `executing`. Returns false if
/// one of them is not `validating`; the caller must then roll back. `signed` is the trace event of
/// the batch.
pub async fn assign_intent(
    tx: &mut Tx,
    intents: &[(&Trade, u32)],
    batch_id: BatchId,
    transition: &Transition,
    signed: &TraceEvent,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE trades SET status = 'executing', nonce = $1, batch_id = $2, updated_at_ms = $3,
        waiting_for = NULL WHERE id = $4 AND status = 'validating'";
    let rows: Vec<Vec<SqlValue<'_>>> = intents
        .iter()
        .map(|(trade, nonce)| params![*nonce, batch_id, transition.trace.at, trade.id].to_vec())
        .collect();
    let moved = tx.exec_each(SQL, &rows).await?;
    let executing =
        |nonce: u32| transition.trace.clone().with("nonce", nonce).with("batchId", batch_id.to_string());
    let executing: Vec<_> = intents.iter().map(|(trade, nonce)| (trade.id, executing(*nonce))).collect();
    trace::append(tx, executing.iter().flat_map(|(id, event)| [(*id, event), (*id, signed)])).await?;
    // If one of the trades had changed, the caller rolls back and no event is written.
    for (trade, _) in intents {
        tx.emit(trade.event(&transition.to, transition.trace.at)?);
        tx.note_trade(trade.moved_to(transition.to.status(), transition.trace.at));
    }
    Ok(moved.iter().all(|affected| *affected == 1))
}

/// Lists a lane's executing trades whose batch was lost before it executed them. They must be
/// signed again with the same intents. Trades of paused keys are left out until their deadline, so
/// that they do not take places from other trades.
pub async fn list_unbatched(
    tx: &mut Tx,
    lane: u16,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Trade::COLUMNS,
        " FROM trades WHERE lane = $1 AND status = 'executing' AND batch_id IS NULL AND ended_at_ms IS NULL
        AND (deadline_ms <= $2 OR NOT EXISTS (SELECT 1 FROM keys k WHERE k.id = trades.key_id
            AND k.paused_at_ms IS NOT NULL AND k.revoked_at_ms IS NULL
            AND (k.expires_at_ms IS NULL OR k.expires_at_ms > $2)))
        ORDER BY created_at_ms, id LIMIT $3"
    );
    tx.list(SQL, &params![lane, now, limit], Trade::from_row).await
}

/// Moves executing trades to another batch. `signed` is that batch's trace event.
pub async fn set_batch(
    tx: &mut Tx,
    trades: &[TradeId],
    batch_id: BatchId,
    signed: &TraceEvent,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE trades SET batch_id = $1 WHERE id = $2 AND status = 'executing'";
    let rows: Vec<Vec<SqlValue<'_>>> = trades.iter().map(|id| params![batch_id, *id].to_vec()).collect();
    let moved = tx.exec_each(SQL, &rows).await?;
    let moved = trades.iter().zip(moved).filter(|(_, affected)| *affected == 1);
    trace::append(tx, moved.map(|(id, _)| (*id, signed))).await
}

/// Removes the executing trades from a batch that will never be mined. `lost` is the trace event
/// that reports this.
pub async fn clear_batch(tx: &mut Tx, batch_id: BatchId, lost: &TraceEvent) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE trades SET batch_id = NULL WHERE batch_id = $1 AND status = 'executing' RETURNING id";
    let cleared: Vec<TradeId> = tx.list(SQL, &params![batch_id], |row| row.only()).await?;
    trace::append(tx, cleared.into_iter().map(|id| (id, lost))).await
}

/// Removes one executing trade from a batch that did not execute it. `lost` is the trace event that
/// reports this.
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

/// Returns the time at which the oldest executing trade became `executing`.
pub async fn find_oldest_executing(tx: &mut Tx) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT MIN(updated_at_ms) AS updated_at_ms FROM trades WHERE status = 'executing' AND ended_at_ms IS NULL";
    Ok(tx.find(SQL, &[], |row| row.only()).await?.flatten())
}

/// Returns the creation times of the oldest open trade of each lane, without trades that wait for
/// their confirmation.
pub async fn list_oldest_open(tx: &mut Tx) -> Result<Vec<(u16, Timestamp)>, StoreError> {
    const SQL: &str = "SELECT lane, MIN(created_at_ms) AS created_at_ms FROM trades
        WHERE status IN ('pending', 'validating', 'executing') AND ended_at_ms IS NULL GROUP BY lane";
    tx.list(SQL, &[], |row| Ok((row.get("lane")?, row.get("created_at_ms")?))).await
}

/// Lists the executing trades whose batch ended before `before`, oldest first, at most `limit`.
pub async fn list_stuck(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<Vec<TradeId>, StoreError> {
    const SQL: &str = "SELECT t.id FROM trades t JOIN batches b ON b.id = t.batch_id
        WHERE t.status = 'executing' AND t.ended_at_ms IS NULL AND b.ended_at_ms < $1
        ORDER BY t.created_at_ms, t.id LIMIT $2";
    tx.list(SQL, &params![before, limit], |row| row.only()).await
}

/// Adds an event to the traces of a batch's executing trades.
pub async fn trace_batch(tx: &mut Tx, batch_id: BatchId, event: &TraceEvent) -> Result<(), StoreError> {
    // The no-op UPDATE locks the rows, so that no other transaction uses the same sequence number.
    const SQL: &str =
        "UPDATE trades SET batch_id = batch_id WHERE batch_id = $1 AND status = 'executing' RETURNING id";
    let carried: Vec<TradeId> = tx.list(SQL, &params![batch_id], |row| row.only()).await?;
    trace::append(tx, carried.into_iter().map(|id| (id, event))).await
}

/// Removes the nonce of an executing trade whose intent never ran because another intent used the
/// nonce. The trade is then signed again with a new nonce. Returns false if the trade has changed,
/// has another nonce, or was already renewed once.
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

/// Assigns the new nonce of a renewed trade. Returns false if the trade has changed.
pub async fn put_renewed_nonce(tx: &mut Tx, id: TradeId, nonce: u32) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE trades SET nonce = $1 WHERE id = $2 AND status = 'executing' AND nonce IS NULL";
    Ok(tx.exec(SQL, &params![nonce, id]).await? == 1)
}
