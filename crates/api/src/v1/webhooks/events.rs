//! Webhook events and their delivery state.

use axum::extract::State;
use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId};
use domain::page::PagePosition;
use domain::webhook::DeliveryStatus;
use http_kit::{
    Caller, List, Meta, NoParameters, Paging, Parameters, PathId, Problem, Query, RawQuery, Shared, Single,
    WebhooksManage,
};
use serde::Serialize;
use serde_json::Value;
use store::StoreError;
use store::webhooks::{Attempt, Delivery, DeliveryFilter};
use utoipa::ToSchema;

use crate::openapi::answers::answers;
use crate::openapi::formats::Instant;
use crate::v1::instants::{INSTANT, instant};

answers! {
    WebhookEventList = list(EventRecord);
    WebhookEventAnswer = single("event", EventRecord);
}

/// A webhook event of a key, with its delivery status.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookEvent)]
#[serde(rename_all = "camelCase")]
pub struct EventRecord {
    id: EventId,
    event_type: EventKind,
    /// The key whose webhook receives the event.
    api_key_id: KeyId,
    /// The trade that the event is about. Null for a test event.
    trade_request_id: Option<TradeId>,
    /// The time at which the event happened.
    emitted_at: Timestamp,
    /// The time at which the event was queued. It equals `emittedAt`, because both happen in one
    /// transaction.
    outbox_emitted_at: Timestamp,
    /// The number of redeliveries that were requested.
    replay_count: u32,
    status: DeliveryStatus,
    delivery: DeliveryRecord,
    /// Every attempt, oldest first. Only in the response for a single event.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<AttemptRecord>>,
    /// The body that is sent, except for white space. Only in the response for a single event.
    #[schema(value_type = Object, nullable = false, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Value>,
}

/// The delivery of an event so far.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
#[serde(rename_all = "camelCase")]
struct DeliveryRecord {
    /// The number of attempts, including those of redeliveries.
    attempts: u32,
    last_attempted_at: Option<Timestamp>,
    last_delivered_at: Option<Timestamp>,
    /// The HTTP status of the last response. Null if there was none.
    last_status_code: Option<u16>,
    /// The failure of the last attempt, such as HTTP_5XX or TIMEOUT.
    last_failure_code: Option<String>,
    last_error_message: Option<String>,
    /// The time of the terminal failure. A redelivery resets it.
    terminal_failure_at: Option<Timestamp>,
}

/// One delivery attempt.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookAttempt)]
#[serde(rename_all = "camelCase")]
struct AttemptRecord {
    at: Timestamp,
    duration_ms: u32,
    status_code: Option<u16>,
    failure_code: Option<String>,
    error_message: Option<String>,
    /// The beginning of the response body, at most 1 KiB.
    response_body: Option<String>,
    /// The redelivery that the attempt belongs to. 0 is the original delivery.
    replay: u32,
}

impl From<Delivery> for EventRecord {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.event_id,
            event_type: delivery.kind,
            api_key_id: delivery.key_id,
            trade_request_id: delivery.trade_id,
            emitted_at: delivery.emitted_at,
            outbox_emitted_at: delivery.emitted_at,
            replay_count: delivery.replays,
            status: delivery.status,
            delivery: DeliveryRecord {
                attempts: delivery.attempts,
                last_attempted_at: delivery.last_attempted_at,
                last_delivered_at: delivery.last_delivered_at,
                last_status_code: delivery.last_status_code,
                last_failure_code: delivery.last_failure_code,
                last_error_message: delivery.last_error_message,
                terminal_failure_at: delivery.terminal_failure_at,
            },
            attempts: None,
            payload: None,
        }
    }
}

impl From<Attempt> for AttemptRecord {
    fn from(attempt: Attempt) -> Self {
        let Attempt { at, duration_ms, status_code, failure_code, error_message, answer_head, replay } =
            attempt;
        Self { at, duration_ms, status_code, failure_code, error_message, response_body: answer_head, replay }
    }
}

/// The parameters `status`, `from` (inclusive), `to` (exclusive), `limit` (default 25) and
/// `cursor`.
#[derive(Debug)]
pub struct EventsQuery {
    filter: DeliveryFilter,
    paging: Paging,
}

impl Parameters for EventsQuery {
    const NAMES: &'static [&'static str] = &["status", "from", "to", "limit", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let filter = DeliveryFilter {
            status: given.parsed("status", "must be pending, delivered, failed, retrying or none"),
            kind: None,
            from: given.with("from", INSTANT, instant),
            to: given.with("to", INSTANT, instant),
        };
        Some(Self { filter, paging: given.paging()? })
    }
}

/// `GET /v1/webhooks/events`: the events of the user's keys, newest first.
#[utoipa::path(
    get, path = "/v1/webhooks/events", operation_id = "listWebhookEvents", tag = "Webhooks", summary = "List webhook events",
    description = "The webhook events of all keys of the user, newest first, with their delivery status. \
        Events that failed terminally more than 30 days ago are deleted.",
    params(
        ("status" = Option<DeliveryStatus>, Query, description = "Events with this delivery status."),
        ("from" = Option<Instant>, Query, description = "Events that happened at or after this."),
        ("to" = Option<Instant>, Query, description = "Events that happened before this."),
    ),
    responses((status = 200, description = "A page of events.", body = WebhookEventList)),
)]
pub async fn list(
    State(app): State<Shared>,
    caller: Caller<WebhooksManage>,
    Query(query): Query<EventsQuery>,
    meta: Meta,
) -> Result<List<EventRecord>, Problem> {
    let EventsQuery { filter, paging } = query;
    let input = (caller.user_id(), filter, paging.page.clone());
    let listed: Result<_, StoreError> = app
        .ctx
        .store
        .read(input, |tx, (user_id, filter, page)| {
            Box::pin(store::webhooks::list(tx, *user_id, filter, page))
        })
        .await;
    let (rows, pagination) = paging.cut(&app.cursor, listed?, position);
    Ok(meta.list(rows.into_iter().map(EventRecord::from).collect(), pagination))
}

/// `GET /v1/webhooks/events/{id}`: one event of the user with its attempts and its body.
#[utoipa::path(
    get, path = "/v1/webhooks/events/{id}", operation_id = "getWebhookEvent", tag = "Webhooks", summary = "Read one webhook event",
    description = "The event, every delivery attempt with the beginning of the receiver's response, and \
        the body that is sent. Another user's event is 404.",
    params(("id" = EventId, Path, description = "The event's id.")),
    responses((status = 200, description = "The event.", body = WebhookEventAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    caller: Caller<WebhooksManage>,
    id: PathId,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<EventRecord>, Problem> {
    let id: EventId = id.parse()?;
    let read: Result<_, StoreError> = app
        .ctx
        .store
        .read((caller.user_id(), id), |tx, (user_id, id)| {
            Box::pin(async move {
                let found = store::webhooks::find(tx, *user_id, *id).await?;
                let body = store::webhooks::find_body(tx, *user_id, *id).await?;
                // The attempts are not restricted to the user, but are only returned if the event
                // was found.
                Ok((found.zip(body), store::webhooks::list_attempts(tx, *id).await?))
            })
        })
        .await;
    let (found, attempts) = read?;
    let (delivery, body) = found.ok_or_else(Problem::not_found)?;
    let payload =
        serde_json::from_str(&body).map_err(|error| Problem::from(app::AppError::internal(error)))?;
    let attempts = attempts.into_iter().map(AttemptRecord::from).collect();
    let event = EventRecord { attempts: Some(attempts), payload: Some(payload), ..delivery.into() };
    Ok(meta.single("event", event))
}

fn position(delivery: &Delivery) -> PagePosition {
    PagePosition { created_at: delivery.emitted_at, id: delivery.event_id.to_string() }
}
