//! Traces: the ordered history of each trade. Every event is written in the transaction of the
//! change that it describes, while the trade's row is locked. The sequence numbers of a trace
//! therefore have no gaps.

use std::collections::HashMap;

use domain::Timestamp;
use domain::ids::{CorrelationId, TradeId, UserId};
use domain::trade::{Status, TraceEvent, TraceStage};
use serde_json::{Map, Value as Json};

use crate::record::{Record, record};
use crate::{Row, SqlValue, StoreError, Tx, params};

record! {
    /// An event of a trace, as stored.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Traced {
        /// The sequence number, from 1 and without gaps.
        pub seq: u32,
        /// The stage of processing.
        pub stage: TraceStage,
        /// The kind of event, such as `trade.created`.
        pub kind: String,
        /// The trade's status after the event.
        pub status: Status,
        pub at: Timestamp = "at_ms",
        /// Details of the event.
        pub attributes: Map<String, Json>,
    }
}

/// Writes the first events of new trades' traces, with their numbers.
pub(super) async fn begin(tx: &mut Tx, events: &[(TradeId, u32, &TraceEvent)]) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO trace_events (trade_id, seq, stage, kind, status, at_ms, attributes)
        SELECT x.trade_id, x.seq, x.stage, x.kind, x.status, x.at_ms, x.attributes
        FROM ROWS($1 TEXT, $2 BIGINT, $3 TEXT, $4 TEXT, $5 TEXT, $6 BIGINT, $7 TEXT)
        AS x(trade_id, seq, stage, kind, status, at_ms, attributes)";
    let mut rows: Vec<Vec<SqlValue<'_>>> = Vec::new();
    for (id, seq, event) in events {
        let (stage, status) = (event.stage.as_str(), event.status.as_str());
        rows.push(params![*id, *seq, stage, event.kind, status, event.at, attributes(event)?].to_vec());
    }
    tx.queue_rows(SQL, rows).await
}

/// Appends events to trades' traces. The caller's transaction must have locked the trades' rows.
pub(super) async fn append<'e>(
    tx: &mut Tx,
    events: impl Iterator<Item = (TradeId, &'e TraceEvent)>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO trace_events (trade_id, seq, stage, kind, status, at_ms, attributes)
        SELECT x.trade_id, (SELECT COALESCE(MAX(t.seq), 0) + 1 FROM trace_events t WHERE t.trade_id = x.trade_id),
        x.stage, x.kind, x.status, x.at_ms, x.attributes
        FROM ROWS($1 TEXT, $2 TEXT, $3 TEXT, $4 TEXT, $5 BIGINT, $6 TEXT)
        AS x(trade_id, stage, kind, status, at_ms, attributes)";
    // A statement for the first events of all trades, and another one for their second ones: the
    // number of an event depends on the events before it.
    let mut statements: Vec<Vec<Vec<SqlValue<'_>>>> = Vec::new();
    let mut counts: HashMap<TradeId, usize> = HashMap::new();
    for (id, event) in events {
        let (stage, status) = (event.stage.as_str(), event.status.as_str());
        let nth = counts.entry(id).or_default();
        if statements.len() == *nth {
            statements.push(Vec::new());
        }
        statements[*nth].push(params![id, stage, event.kind, status, event.at, attributes(event)?].to_vec());
        *nth += 1;
    }
    for rows in statements {
        tx.queue_rows(SQL, rows).await?;
    }
    Ok(())
}

/// Locks a trade's row until the transaction ends and returns its status. A transaction that also
/// locks other rows must lock the trade first.
pub async fn lock(tx: &mut Tx, id: TradeId) -> Result<Option<Status>, StoreError> {
    const SQL: &str = "UPDATE trades SET status = status WHERE id = $1 RETURNING status";
    tx.find(SQL, &params![id], |row| row.only()).await
}

/// Appends the event that `build` creates from the trade's status. The trade itself is unchanged.
/// Does nothing if the trade does not exist.
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

/// Finds the user's trade for a correlation id, and returns its id and its own correlation id.
///
/// A client may use one correlation id for many trades: the newest of them is returned. A trade's
/// id in hexadecimal, which is the default correlation id, always finds exactly that trade.
pub async fn find_traced(
    tx: &mut Tx,
    user_id: UserId,
    correlation_id: CorrelationId,
) -> Result<Option<(TradeId, CorrelationId)>, StoreError> {
    const BY_ID: &str = "SELECT id, correlation_id FROM trades WHERE id = $1 AND user_id = $2";
    const NAMED: &str = "SELECT id, correlation_id FROM trades WHERE user_id = $1 AND correlation_id = $2
        ORDER BY created_at_ms DESC, id DESC LIMIT 1";
    let id = correlation_id.trade_id();
    let map = |row: &Row<'_>| Ok((row.get("id")?, row.get("correlation_id")?));
    match tx.find(BY_ID, &params![id, user_id], map).await? {
        Some(found) => Ok(Some(found)),
        None => tx.find(NAMED, &params![user_id, correlation_id], map).await,
    }
}

/// Returns a trade's trace, in order.
pub async fn list_trace(tx: &mut Tx, trade_id: TradeId) -> Result<Vec<Traced>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Traced::COLUMNS,
        " FROM trace_events WHERE trade_id = $1 ORDER BY seq LIMIT 1000"
    );
    tx.list(SQL, &params![trade_id], Traced::from_row).await
}
