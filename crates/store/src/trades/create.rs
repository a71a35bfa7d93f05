//! The row of a new trade, and detection of repeated requests by idempotency key or by
//! `clientRequestId`.

use domain::Timestamp;
use domain::ids::{TradeId, UserId};

use super::row::Trade;
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

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

/// Inserts trades, with the values of [`values`].
pub(super) const INSERT: &str = "INSERT INTO trades (id, user_id, key_id, account, market_id, outcome_index, side,
    amount_text, amount_type, metadata, client_request_id, request_hash, correlation_id, intent_side,
    intent_usdc_atomic, intent_tokens_wad, deadline_ms, key_index, lane, reserved_usdc_atomic, status,
    confirmation_expires_at_ms, created_at_ms, updated_at_ms, max_slippage_bps, volume_usdc_atomic, queue_rank,
    is_from_agent)
    SELECT x.id, x.user_id, x.key_id, x.account, x.market_id, x.outcome_index, x.side,
    x.amount_text, x.amount_type, x.metadata, x.client_request_id, x.request_hash, x.correlation_id, x.intent_side,
    x.intent_usdc_atomic, x.intent_tokens_wad, x.deadline_ms, x.key_index, x.lane, x.reserved_usdc_atomic, x.status,
    x.confirmation_expires_at_ms, x.created_at_ms, x.created_at_ms, x.max_slippage_bps, x.volume_usdc_atomic,
    x.queue_rank, x.is_from_agent
    FROM ROWS($1 TEXT, $2 TEXT, $3 TEXT, $4 TEXT, $5 TEXT, $6 BIGINT, $7 TEXT, $8 TEXT, $9 TEXT, $10 TEXT, $11 TEXT,
    $12 TEXT, $13 TEXT, $14 BIGINT, $15 BIGINT, $16 TEXT, $17 BIGINT, $18 BIGINT, $19 BIGINT, $20 BIGINT, $21 TEXT,
    $22 BIGINT, $23 BIGINT, $24 BIGINT, $25 BIGINT, $26 BIGINT, $27 BIGINT)
    AS x(id, user_id, key_id, account, market_id, outcome_index, side, amount_text, amount_type, metadata,
    client_request_id, request_hash, correlation_id, intent_side, intent_usdc_atomic, intent_tokens_wad, deadline_ms,
    key_index, lane, reserved_usdc_atomic, status, confirmation_expires_at_ms, created_at_ms, max_slippage_bps,
    volume_usdc_atomic, queue_rank, is_from_agent)";

pub(super) fn values(trade: &Trade, queue_rank: i64) -> Result<Vec<SqlValue<'_>>, StoreError> {
    let metadata = serde_json::to_string(&trade.metadata).map_err(|error| StoreError::unwritable(&error))?;
    let values = params![
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
        trade.max_slippage_bps,
        trade.volume,
        queue_rank,
        trade.is_from_agent
    ];
    Ok(values.to_vec())
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
