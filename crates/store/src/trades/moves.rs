//! Status changes of trades. Each is a compare-and-set on the old status and reports whether it
//! took effect.

use std::collections::HashSet;

use domain::ids::{BatchId, TradeId};
use domain::trade::{State, Status, TraceEvent, Transition};
use domain::{Timestamp, Usdc};

use super::queue::next_rank;
use super::row::Trade;
use super::trace;
use crate::record::Record;
use crate::{SqlValue, StoreError, TradeMove, Tx, keys, params, usage, users};

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
    let moved = apply_all(tx, &[(trade, transition)]).await?;
    moved.into_iter().next().ok_or_else(|| StoreError::missing("trades"))
}

/// Applies transitions of different trades: see [`apply`]. Returns the result of each.
pub async fn apply_all(tx: &mut Tx, moves: &[(&Trade, &Transition)]) -> Result<Vec<Moved>, StoreError> {
    const SQL: &str = "UPDATE trades SET status = x.to_status, tx_hash = x.new_tx_hash,
        block_number = x.new_block_number, tokens_moved_wad = x.tokens_wad, usdc_moved_atomic = x.usdc_atomic,
        fee_atomic = x.new_fee_atomic, error_code = x.new_error_code, error_message = x.new_error_message,
        updated_at_ms = x.at_ms, ended_at_ms = x.new_ended_at_ms, reserved_usdc_atomic = x.kept_usdc_atomic
        FROM ROWS($1 TEXT, $2 TEXT, $3 BIGINT, $4 TEXT, $5 BIGINT, $6 BIGINT, $7 TEXT, $8 TEXT, $9 BIGINT, $10 BIGINT,
        $11 BIGINT, $12 TEXT, $13 TEXT)
        AS x(to_status, new_tx_hash, new_block_number, tokens_wad, usdc_atomic, new_fee_atomic, new_error_code,
        new_error_message, at_ms, new_ended_at_ms, kept_usdc_atomic, trade_id, from_status)
        WHERE trades.id = x.trade_id AND trades.status = x.from_status RETURNING id";
    let mut rows = Vec::with_capacity(moves.len());
    for (trade, transition) in moves {
        rows.push(values(trade, transition)?);
    }
    let moved: HashSet<TradeId> = tx.list_rows(SQL, rows, |row| row.only()).await?.into_iter().collect();
    let done: Vec<(&Trade, &Transition)> =
        moves.iter().filter(|(trade, _)| moved.contains(&trade.id)).copied().collect();
    release_funds(tx, &done).await?;
    let released: Vec<Option<TraceEvent>> =
        done.iter().map(|(trade, to)| funds_released(trade, to)).collect();
    let traced = done.iter().zip(&released).flat_map(|((trade, transition), released)| {
        std::iter::once(&transition.trace).chain(released).map(|event| (trade.id, event))
    });
    let traced: Vec<(TradeId, &TraceEvent)> = traced.collect();
    trace::append(tx, traced.into_iter()).await?;
    let ended = done.iter().map(|(trade, transition)| (trade.key_id, transition.trace.at, &transition.to));
    let ended: Vec<_> = ended.collect();
    usage::add_ended(tx, &ended).await?;
    for (trade, transition) in &done {
        let at = transition.trace.at;
        tx.emit(trade.event(&transition.to, at)?);
        tx.note_trade(trade.moved_to(&transition.to, at));
    }
    let mut outcomes = Vec::with_capacity(moves.len());
    for (trade, _) in moves {
        outcomes.push(if moved.contains(&trade.id) { Moved::Moved } else { stale(tx, trade.id).await? });
    }
    Ok(outcomes)
}

async fn stale(tx: &mut Tx, id: TradeId) -> Result<Moved, StoreError> {
    let found = super::find_any(tx, id).await?.ok_or_else(|| StoreError::missing("trades"))?;
    Ok(Moved::Stale { current: found.state.status() })
}

fn values<'a>(trade: &Trade, transition: &'a Transition) -> Result<Vec<SqlValue<'a>>, StoreError> {
    let to = transition.to.status();
    let at = transition.trace.at;
    let (settlement, failure, refusal) = match &transition.to {
        State::Completed(settlement) => (Some(settlement), None, None),
        State::Failed(failure) => (None, Some(failure), None),
        State::Rejected(refusal) => (None, None, Some(refusal)),
        _ => (None, None, None),
    };
    let tx_hash = settlement.map(|s| s.tx_hash).or(failure.and_then(|f| f.tx_hash));
    let error_code = failure.map(|f| f.code.as_str()).or(refusal.map(|r| r.reason.as_str()));
    let error_message = failure.map(|f| f.message.as_str()).or(refusal.map(|r| r.reason.message()));
    let values = params![
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
        kept_reservation(trade, &transition.to),
        trade.id,
        transition.from.as_str()
    ];
    Ok(values.to_vec())
}

/// The part of the daily cap that a transition gives back.
fn given_back(trade: &Trade, transition: &Transition) -> Usdc {
    trade.reserved.saturating_sub(kept_reservation(trade, &transition.to))
}

fn funds_released(trade: &Trade, transition: &Transition) -> Option<TraceEvent> {
    let given_back = given_back(trade, transition);
    (given_back > Usdc::ZERO)
        .then(|| TraceEvent::funds_released(given_back, transition.to.status(), transition.trace.at))
}

/// Locks the keys' rows before the accounts', in the same order as at creation, to avoid deadlocks.
async fn release_funds(tx: &mut Tx, moves: &[(&Trade, &Transition)]) -> Result<(), StoreError> {
    let mut spent = Vec::new();
    let mut reserved = Vec::new();
    for (trade, transition) in moves {
        let given_back = given_back(trade, transition);
        if given_back > Usdc::ZERO {
            spent.push((trade.key_id, given_back, trade.created_at));
        }
        if transition.to.status().is_terminal() && trade.reserved > Usdc::ZERO {
            reserved.push((trade.user_id, trade.reserved));
        }
    }
    keys::give_back_spent(tx, &spent).await?;
    users::release_reservations(tx, &reserved).await
}

/// Applies the transition of a held trade that was confirmed. The trade joins the queue of `lane`,
/// which may not be that of its creation, and its intent gets a new deadline.
pub async fn enqueue_confirmed(
    tx: &mut Tx,
    trade: &Trade,
    transition: &Transition,
    deadline: Timestamp,
    lane: u16,
) -> Result<Moved, StoreError> {
    const SQL: &str = concat!(
        "UPDATE trades SET deadline_ms = $1, queue_rank = ",
        next_rank!("$2", "$3"),
        ", lane = $3 WHERE id = $4"
    );
    let moved = apply(tx, trade, transition).await?;
    if moved == Moved::Moved {
        tx.exec(SQL, &params![deadline, trade.user_id, lane, trade.id]).await?;
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
/// one of them is not `validating` or in another lane; the caller must then roll back. `signed` is the
/// trace event of the batch, if it is signed already.
pub async fn assign_intent(
    tx: &mut Tx,
    intents: &[(&Trade, u32)],
    batch_id: BatchId,
    transition: &Transition,
    signed: Option<&TraceEvent>,
) -> Result<bool, StoreError> {
    const SQL: &str =
        "UPDATE trades SET status = 'executing', nonce = x.new_nonce, batch_id = x.new_batch_id,
        updated_at_ms = x.at_ms, waiting_for = NULL
        FROM ROWS($1 BIGINT, $2 TEXT, $3 BIGINT, $4 TEXT, $5 BIGINT)
        AS x(new_nonce, new_batch_id, at_ms, trade_id, trade_lane)
        WHERE trades.id = x.trade_id AND trades.status = 'validating' AND trades.lane = x.trade_lane";
    let rows = intents
        .iter()
        .map(|(trade, nonce)| params![*nonce, batch_id, transition.trace.at, trade.id, trade.lane].to_vec())
        .collect();
    let moved = tx.exec_rows(SQL, rows).await?;
    let executing =
        |nonce: u32| transition.trace.clone().with("nonce", nonce).with("batchId", batch_id.to_string());
    let executing: Vec<_> = intents.iter().map(|(trade, nonce)| (trade.id, executing(*nonce))).collect();
    let mut traced: Vec<(TradeId, &TraceEvent)> = Vec::with_capacity(2 * executing.len());
    for (id, event) in &executing {
        traced.push((*id, event));
        traced.extend(signed.map(|signed| (*id, signed)));
    }
    trace::append(tx, traced.into_iter()).await?;
    // If one of the trades had changed, the caller rolls back and no event is written.
    for (trade, _) in intents {
        tx.emit(trade.event(&transition.to, transition.trace.at)?);
        let moved = trade.moved_to(&transition.to, transition.trace.at);
        tx.note_trade(TradeMove { batch_id: Some(batch_id), ..moved });
    }
    Ok(moved == intents.len() as u64)
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

/// Moves executing trades to another batch. `signed` is that batch's trace event, if it is signed
/// already.
pub async fn set_batch(
    tx: &mut Tx,
    trades: &[TradeId],
    batch_id: BatchId,
    signed: Option<&TraceEvent>,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE trades SET batch_id = x.new_batch_id
        FROM ROWS($1 TEXT, $2 TEXT) AS x(new_batch_id, trade_id)
        WHERE trades.id = x.trade_id AND trades.status = 'executing' RETURNING id";
    let rows = trades.iter().map(|id| params![batch_id, *id].to_vec()).collect();
    let moved: Vec<TradeId> = tx.list_rows(SQL, rows, |row| row.only()).await?;
    let traced: Vec<_> =
        signed.into_iter().flat_map(|signed| moved.iter().map(move |id| (*id, signed))).collect();
    trace::append(tx, traced.into_iter()).await
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

/// Counts the open trades of a lane, without those that wait for their confirmation.
pub async fn count_open(tx: &mut Tx, lane: u16) -> Result<u64, StoreError> {
    const SQL: &str = "SELECT COUNT(*) AS trades FROM trades WHERE lane = $1
        AND status IN ('pending', 'validating', 'executing') AND ended_at_ms IS NULL";
    Ok(tx.find(SQL, &params![lane], |row| row.only()).await?.unwrap_or_default())
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
