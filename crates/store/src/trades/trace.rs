//! Traces: what happened to a trade, in order. Every event is written by the transaction that made what it tells, under the
//! lock of the trade's row, and so the numbers of a trace have no gap.

use domain::Timestamp;
use domain::ids::{CorrelationId, TradeId, UserId};
use domain::trade::{Status, TraceEvent, TraceStage};
use serde_json::{Map, Value as Json};

use crate::{Row, StoreError, Tx, Value, params};

/// One event of a trace, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// Its number: 1 for the first, without gaps.
    pub seq: u32,
    /// Where on the path it happened.
    pub stage: TraceStage,
    /// What happened.
    pub kind: String,
    /// The trade's status from there on.
    pub status: Status,
    /// When.
    pub at: Timestamp,
    /// What is worth knowing of it.
    pub attributes: Map<String, Json>,
}

fn from_row(row: &Row<'_>) -> Result<Traced, StoreError> {
    Ok(Traced {
        seq: row.number(0)?,
        stage: row.parse(1)?,
        kind: row.text(2)?,
        status: row.parse(3)?,
        at: row.timestamp(4)?,
        attributes: serde_json::from_str(row.str(5)?).map_err(|_| row.corrupt(5, "not a JSON object"))?,
    })
}

/// The first events of a new trade's trace.
pub(super) async fn begin(
    tx: &mut Tx,
    id: TradeId,
    events: impl Iterator<Item = &TraceEvent>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO trace_events (trade_id, seq, stage, kind, status, at_ms, attributes)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let mut rows: Vec<Vec<Value<'_>>> = Vec::with_capacity(2);
    for (seq, event) in (1i64..).zip(events) {
        let (stage, status) = (event.stage.as_str(), event.status.as_str());
        rows.push(params![id, seq, stage, event.kind, status, event.at, attributes(event)?].to_vec());
    }
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Adds events behind those that a trade has. The trade's row is locked by the transaction.
pub(super) async fn append<'e>(
    tx: &mut Tx,
    events: impl Iterator<Item = (TradeId, &'e TraceEvent)>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO trace_events (trade_id, seq, stage, kind, status, at_ms, attributes)
        SELECT $1, COALESCE(MAX(seq), 0) + 1, $2, $3, $4, $5, $6 FROM trace_events WHERE trade_id = $1";
    let mut rows: Vec<Vec<Value<'_>>> = Vec::new();
    for (id, event) in events {
        let (stage, status) = (event.stage.as_str(), event.status.as_str());
        rows.push(params![id, stage, event.kind, status, event.at, attributes(event)?].to_vec());
    }
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// The status of a trade, whose row stays locked until the transaction ends. What locks other rows too locks this one first.
pub async fn lock(tx: &mut Tx, id: TradeId) -> Result<Option<Status>, StoreError> {
    const SQL: &str = "UPDATE trades SET status = status WHERE id = $1 RETURNING status";
    tx.find(SQL, &params![id], |row| row.parse(0)).await
}

/// Adds the event that `build` makes for the trade's status, and leaves the trade as it is. A trade that is not there has
/// no trace.
pub async fn append_trace(
    tx: &mut Tx,
    id: TradeId,
    build: impl FnOnce(Status) -> TraceEvent,
) -> Result<(), StoreError> {
    match lock(tx, id).await? {
        Some(status) => append(tx, std::iter::once((id, &build(status)))).await,
        None => Ok(()),
    }
}

fn attributes(event: &TraceEvent) -> Result<String, StoreError> {
    serde_json::to_string(&event.attributes).map_err(|error| StoreError::unwritable(&error))
}

/// The user's trade that a trace id leads to, and the correlation id that it has.
///
/// A caller may name one trace for many trades: the newest of them is found by it. Every trade's own id in hexadecimal,
/// which is its correlation id where the caller named none, always leads to that very trade.
pub async fn find_traced(
    tx: &mut Tx,
    user_id: UserId,
    correlation_id: CorrelationId,
) -> Result<Option<(TradeId, CorrelationId)>, StoreError> {
    const BY_ID: &str = "SELECT id, correlation_id FROM trades WHERE id = $1 AND user_id = $2";
    const NAMED: &str = "SELECT id, correlation_id FROM trades WHERE user_id = $1 AND correlation_id = $2
        ORDER BY created_at_ms DESC, id DESC LIMIT 1";
    let id = correlation_id.trade_id();
    let map = |row: &Row<'_>| Ok((row.parse(0)?, row.parse(1)?));
    match tx.find(BY_ID, &params![id, user_id], map).await? {
        Some(found) => Ok(Some(found)),
        None => tx.find(NAMED, &params![user_id, correlation_id], map).await,
    }
}

/// A trade's trace, in order.
pub async fn list_trace(tx: &mut Tx, trade_id: TradeId) -> Result<Vec<Traced>, StoreError> {
    const SQL: &str =
        "SELECT seq, stage, kind, status, at_ms, attributes FROM trace_events WHERE trade_id = $1
        ORDER BY seq LIMIT 1000";
    tx.list(SQL, &params![trade_id], from_row).await
}
