//! Creation of trades, and detection of repeated requests by idempotency key or by
//! `clientRequestId`.

use domain::ids::{TradeId, UserId};
use domain::trade::TraceEvent;
use domain::{Timestamp, Usdc};

use super::queue::{NOT_QUEUED, next_rank};
use super::row::Trade;
use super::trace;
use crate::keys::TradingStop;
use crate::record::{Record, record};
use crate::{StoreError, Tx, params, usage};

record! {
    /// The earlier use of an idempotency key.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Reuse {
        /// The fingerprint of the first request, in hex.
        pub request_hash: String,
        /// The trade that the first request created.
        pub trade_id: TradeId,
    }
}

/// Returns the earlier use of this idempotency key if it has not expired at `now`.
pub async fn find_reuse(
    tx: &mut Tx,
    user_id: UserId,
    route: &str,
    key: &str,
    now: Timestamp,
) -> Result<Option<Reuse>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Reuse::COLUMNS,
        " FROM idempotency WHERE user_id = $1 AND route = $2 AND idempotency_key = $3 AND expires_at_ms > $4"
    );
    tx.find(SQL, &params![user_id, route, key, now], Reuse::from_row).await
}

/// Stores an idempotency key for a trade. Returns false if another request holds the key and it has
/// not expired. The caller must then roll back this transaction.
pub async fn insert_idempotency(
    tx: &mut Tx,
    user_id: UserId,
    route: &str,
    key: &str,
    reuse: &Reuse,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<bool, StoreError> {
    // The UPDATE replaces only an expired key. A live key leaves zero rows affected.
    const SQL: &str = "INSERT INTO idempotency (user_id, route, idempotency_key, request_hash, trade_id, expires_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (user_id, route, idempotency_key) DO UPDATE
        SET request_hash = excluded.request_hash, trade_id = excluded.trade_id, expires_at_ms = excluded.expires_at_ms
        WHERE idempotency.expires_at_ms <= $7";
    let bound = params![user_id, route, key, &reuse.request_hash, reuse.trade_id, expires_at, now];
    Ok(tx.exec(SQL, &bound).await? == 1)
}

pub async fn find_by_client_request(
    tx: &mut Tx,
    user_id: UserId,
    id: &str,
) -> Result<Option<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Trade::COLUMNS,
        " FROM trades WHERE user_id = $1 AND client_request_id = $2"
    );
    tx.find(SQL, &params![user_id, id], Trade::from_row).await
}

/// The outcome of inserting a trade. Only `Added` has written anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    Added,
    /// The user already has a trade with this `clientRequestId`.
    Taken,
    /// The key may not trade: it is paused, revoked or expired.
    Stopped(TradingStop),
}

/// Inserts a trade and the first events of its trace: `created`, and the reservation of funds if
/// there is one.
///
/// The statement itself checks that the key is not paused, revoked or expired. The check therefore
/// holds at the moment of the insert, even if the caller read the key earlier.
pub async fn insert(tx: &mut Tx, trade: &Trade, created: &TraceEvent) -> Result<Inserted, StoreError> {
    // A held trade gets a rank only when it is confirmed.
    const SQL: &str = concat!(
        "INSERT INTO trades (id, user_id, key_id, account, market_id, outcome_index, side, amount_text,
        amount_type, metadata, client_request_id, request_hash, correlation_id, intent_side, intent_usdc_atomic,
        intent_tokens_wad, deadline_ms, key_index, lane, reserved_usdc_atomic, status, confirmation_expires_at_ms,
        created_at_ms, updated_at_ms, max_slippage_bps, volume_usdc_atomic, queue_rank)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
        $23, $24, $25, $26, CASE WHEN $21 = 'pending' THEN ",
        next_rank!("$2", "$19"),
        " ELSE $27 END WHERE NOT EXISTS (SELECT 1 FROM keys WHERE id = $3
        AND (paused_at_ms IS NOT NULL OR revoked_at_ms IS NOT NULL OR expires_at_ms <= $23))
        ON CONFLICT DO NOTHING"
    );
    let metadata = serde_json::to_string(&trade.metadata).map_err(|error| StoreError::unwritable(&error))?;
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
        metadata,
        trade.client_request_id.as_deref(),
        &trade.request_hash,
        trade.correlation_id,
        trade.intent_side,
        trade.intent_usdc,
        trade.intent_tokens,
        trade.deadline,
        trade.key_index,
        trade.lane,
        trade.reserved,
        trade.state.status().as_str(),
        trade.held_until,
        trade.created_at,
        trade.created_at,
        trade.max_slippage_bps,
        trade.volume,
        NOT_QUEUED
    ];
    if tx.exec(SQL, &bound).await? == 0 {
        // No row was inserted. A usable key means that the `clientRequestId` was the conflict.
        let stop = crate::keys::find_trading_stop(tx, trade.key_id, trade.created_at).await?;
        return Ok(stop.map_or(Inserted::Taken, Inserted::Stopped));
    }
    let status = trade.state.status();
    let reserved = (trade.reserved > Usdc::ZERO)
        .then(|| TraceEvent::funds_reserved(trade.reserved, status, trade.created_at));
    trace::begin(tx, trade.id, std::iter::once(created).chain(&reserved)).await?;
    usage::add_created(tx, trade.key_id, trade.created_at).await?;
    tx.emit(trade.event(&trade.state, trade.created_at)?);
    tx.note_trade(trade.moved_to(status, trade.created_at));
    Ok(Inserted::Added)
}

/// Deletes at most `limit` idempotency keys that have expired at `now` and returns their number.
pub async fn delete_expired_idempotency(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
    // The outer condition is checked again after a row lock: a concurrent request may have renewed
    // the key since the subquery read it.
    const SQL: &str = "DELETE FROM idempotency WHERE (user_id, route, idempotency_key) IN (
        SELECT user_id, route, idempotency_key FROM idempotency WHERE expires_at_ms <= $1 LIMIT $2)
        AND expires_at_ms <= $1";
    tx.exec(SQL, &params![now, limit]).await
}
