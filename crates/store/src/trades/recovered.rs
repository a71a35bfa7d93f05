//! Recovery of trades whose rows were lost or set back by a restored backup. They are brought in
//! line with the chain.

use std::collections::HashMap;

use domain::ids::TradeId;
use domain::trade::{State, Status, TraceEvent};
use domain::{Timestamp, Usdc, limits};

use super::queue::NOT_QUEUED;
use super::row::Trade;
use super::trace;
use crate::{Row, SqlValue, StoreError, Tx, keys, params, usage, users};

/// The number of ids in each query of [`list_statuses`].
const AT_ONCE: usize = 32;

/// Returns the statuses of those of the given trades that exist.
pub async fn list_statuses(tx: &mut Tx, ids: &[TradeId]) -> Result<HashMap<TradeId, Status>, StoreError> {
    const SQL: &str = "SELECT id, status FROM trades WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
        $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)";
    let mut found = HashMap::with_capacity(ids.len());
    for some in ids.chunks(AT_ONCE) {
        // The statement has a fixed number of placeholders. Unused ones repeat the first id.
        let Some(one) = some.first() else { continue };
        let filled = some.iter().chain(std::iter::repeat(one)).take(AT_ONCE);
        let bound: Vec<SqlValue<'_>> = filled.map(|id| SqlValue::from(*id)).collect();
        let rows: Vec<(TradeId, Status)> =
            tx.list(SQL, &bound, |row: &Row<'_>| Ok((row.get("id")?, row.get("status")?))).await?;
        found.extend(rows);
    }
    Ok(found)
}

/// Inserts a lost trade as `executing`, with the first events of its trace. It reserves funds like
/// a new trade, so that its end releases what it did not spend. Returns false if the trade exists.
pub async fn insert_recovered(
    tx: &mut Tx,
    trade: &Trade,
    recovered: &TraceEvent,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO trades (id, user_id, key_id, account, market_id, outcome_index, side, amount_text,
        amount_type, metadata, request_hash, correlation_id, intent_side, intent_usdc_atomic, intent_tokens_wad,
        deadline_ms, key_index, lane, nonce, reserved_usdc_atomic, status, created_at_ms, updated_at_ms, queue_rank,
        recovered_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, '{}', $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
        $22, $23, $22) ON CONFLICT DO NOTHING";
    let bound = params![
        trade.id,
        trade.user_id,
        trade.key_id,
        trade.account,
        trade.market_id,
        trade.outcome_index,
        trade.side.as_str(),
        &trade.amount_text,
        trade.amount_type.as_str(),
        &trade.request_hash,
        trade.correlation_id,
        trade.intent_side,
        trade.intent_usdc,
        trade.intent_tokens,
        trade.deadline,
        trade.key_index,
        trade.lane,
        trade.nonce,
        trade.reserved,
        Status::Executing.as_str(),
        trade.created_at,
        now,
        NOT_QUEUED
    ];
    // Lock the key's row first, as at creation.
    keys::lock_spent(tx, trade.key_id, now).await?;
    if tx.exec(SQL, &bound).await? == 0 {
        return Ok(false);
    }
    set_aside(tx, trade, trade.reserved, now).await?;
    let aside = funds_reserved(trade.reserved, recovered.at);
    let begun = (1u32..).zip(std::iter::once(recovered).chain(&aside));
    let begun: Vec<_> = begun.map(|(seq, event)| (trade.id, seq, event)).collect();
    trace::begin(tx, &begun).await?;
    usage::add_created(tx, &[(trade.key_id, trade.created_at)]).await?;
    tx.emit(trade.event(&State::Executing, recovered.at)?);
    Ok(true)
}

/// Sets a trade back to `executing`, because the chain has decided it differently. This happens if
/// an older copy of its row was restored, or if it was ended here before the decision was known.
/// Returns the updated trade, or `None` if it has changed meanwhile.
pub async fn reopen(tx: &mut Tx, trade: &Trade, recovered: &TraceEvent) -> Result<Option<Trade>, StoreError> {
    const SQL: &str =
        "UPDATE trades SET status = 'executing', error_code = NULL, error_message = NULL, tx_hash = NULL,
        ended_at_ms = NULL, reserved_usdc_atomic = $1, updated_at_ms = $2 WHERE id = $3 AND status = $4";
    let status = trade.state.status();
    // The end of the trade released its reservation, so a reopened buy reserves its full amount
    // again.
    let is_buy = trade.side == domain::trade::Side::Buy;
    let reserved = if status.is_terminal() && is_buy { trade.intent_usdc } else { trade.reserved };
    let at = recovered.at;
    // Lock the trade before its key's spending, as every transition does: the other order can
    // deadlock with one. The spending must be read before the trade's reservation changes.
    trace::lock(tx, trade.id).await?;
    keys::lock_spent(tx, trade.key_id, at).await?;
    if tx.exec(SQL, &params![reserved, at, trade.id, status.as_str()]).await? == 0 {
        return Ok(None);
    }
    let again = reserved.saturating_sub(trade.reserved);
    let reopened =
        Trade { reserved, state: State::Executing, ended_at: None, updated_at: at, ..trade.clone() };
    set_aside(tx, &reopened, again, at).await?;
    if let Some(ended_at) = trade.ended_at {
        usage::take_back_ended(tx, trade.key_id, ended_at, &trade.state).await?;
    }
    let aside = funds_reserved(again, at);
    let events = std::iter::once(recovered).chain(&aside);
    trace::append(tx, events.map(|event| (trade.id, event))).await?;
    tx.emit(reopened.event(&State::Executing, at)?);
    Ok(Some(reopened))
}

fn funds_reserved(amount: Usdc, at: Timestamp) -> Option<TraceEvent> {
    (amount > Usdc::ZERO).then(|| TraceEvent::funds_reserved(amount, Status::Executing, at))
}

/// Reserves an amount in the account's balance, and in the key's daily cap if the trade was created
/// within the last 24 hours. The caller has locked the key's row.
async fn set_aside(tx: &mut Tx, trade: &Trade, amount: Usdc, now: Timestamp) -> Result<(), StoreError> {
    if amount == Usdc::ZERO {
        return Ok(());
    }
    if trade.created_at > limits::window_start(now) {
        keys::add_spent(tx, trade.key_id, amount).await?;
    }
    users::reserve(tx, trade.user_id, amount).await.map(drop)
}
