//! Traces of trades.

use axum::extract::State;
use domain::Timestamp;
use domain::ids::{CorrelationId, TradeId};
use domain::trade::{Status, TraceStage};
use http_kit::{Caller, Meta, NoParameters, PathId, Problem, Query, Shared, Single, TradesRead};
use serde::Serialize;
use serde_json::{Map, Value};
use store::StoreError;
use store::trades::Traced;
use utoipa::ToSchema;

use crate::openapi::answers::answers;

answers! {
    TraceAnswer = single("trace", TraceRecord);
}

/// The events of a trade, in order. All other members are derived from the events, so that they are
/// consistent while the trade runs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trace)]
#[serde(rename_all = "camelCase")]
pub struct TraceRecord {
    correlation_id: CorrelationId,
    trade_id: TradeId,
    /// The trade's status after the last event.
    status: Status,
    started_at: Timestamp,
    /// The time at which the trade ended. Null while it runs.
    ended_at: Option<Timestamp>,
    events: Vec<EventRecord>,
}

/// A step of a trade.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TraceEvent)]
#[serde(rename_all = "camelCase")]
struct EventRecord {
    /// 1 for the first, without gaps.
    seq: u32,
    stage: TraceStage,
    /// The type of the event. Types may be added.
    #[schema(example = "trade.completed")]
    r#type: String,
    at: Timestamp,
    /// Milliseconds since the previous event. 0 for the first.
    duration_ms: i64,
    /// The trade's status after this event.
    status: Status,
    /// Details of the event, which depend on its type.
    #[schema(value_type = Object)]
    attributes: Map<String, Value>,
}

impl TraceRecord {
    /// Builds a trace from its events, or returns `None` if there are none.
    fn new(trade_id: TradeId, correlation_id: CorrelationId, events: Vec<Traced>) -> Option<Self> {
        let (first, last) = (events.first()?, events.last()?);
        let (started_at, status) = (first.at, last.status);
        let ended_at = events.iter().find(|event| event.status.is_terminal()).map(|event| event.at);
        let mut before = started_at;
        let record = |event: Traced| {
            let Traced { seq, stage, kind, status, at, attributes } = event;
            // The events come from several processes, whose clocks may differ.
            let duration_ms = at.since_ms(before).max(0);
            before = at;
            EventRecord { seq, stage, r#type: kind, at, duration_ms, status, attributes }
        };
        let events = events.into_iter().map(record).collect();
        Some(Self { correlation_id, trade_id, status, started_at, ended_at, events })
    }
}

/// `GET /v1/traces/{correlationId}`: the trace of a trade of the caller's user, also while the
/// trade runs.
///
/// If several trades share the trace id, returns the newest. A trade's own id without its hyphens
/// always returns that trade.
#[utoipa::path(
    get, path = "/v1/traces/{correlationId}", operation_id = "getTrace", tag = "Trades", summary = "Trace a trade",
    description = "The events of a trade, in order, also while it runs. If several of your trades have the \
        same correlation id, the newest of them. A trade's id without its hyphens always returns that \
        trade.",
    params(("correlationId" = CorrelationId, Path, description = "The trade's correlationId.")),
    responses((status = 200, description = "The trace.", body = TraceAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    caller: Caller<TradesRead>,
    id: PathId,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<TraceRecord>, Problem> {
    let id: CorrelationId = id.parse()?;
    let found: Result<_, StoreError> = app
        .ctx
        .store
        .read((caller.user_id(), id), |tx, (user_id, id)| {
            Box::pin(async move {
                let Some((trade_id, correlation_id)) = store::trades::find_traced(tx, *user_id, *id).await?
                else {
                    return Ok(None);
                };
                let events = store::trades::list_trace(tx, trade_id).await?;
                Ok(TraceRecord::new(trade_id, correlation_id, events))
            })
        })
        .await;
    Ok(meta.single("trace", found?.ok_or_else(Problem::not_found)?))
}
