//! Sends webhook events on request: replays of past events, and test events.

use axum::extract::State;
use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId};
use http_kit::{Caller, Meta, NoBody, NoParameters, PathId, Problem, Query, Shared, Single, WebhooksManage};
use serde::Serialize;
use store::webhooks::Delivery;
use utoipa::ToSchema;

use crate::openapi::answers::answers;

answers! {
    QueuedEventAnswer = single("event", QueuedEvent);
}

/// An event that was added to the end of its key's queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedEvent {
    id: EventId,
    event_type: EventKind,
    api_key_id: KeyId,
    /// The trade that the event is about. Null for a test event.
    trade_request_id: Option<TradeId>,
    emitted_at: Timestamp,
    /// The time of the last successful delivery. Null if there was none.
    last_delivered_at: Option<Timestamp>,
    /// The number of attempts so far.
    delivery_attempts: u32,
}

impl From<Delivery> for QueuedEvent {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.event_id,
            event_type: delivery.kind,
            api_key_id: delivery.key_id,
            trade_request_id: delivery.trade_id,
            emitted_at: delivery.emitted_at,
            last_delivered_at: delivery.last_delivered_at,
            delivery_attempts: delivery.attempts,
        }
    }
}

/// `POST /v1/webhooks/events/{id}/redeliver`: each call queues the event once more.
#[utoipa::path(
    post, path = "/v1/webhooks/events/{id}/redeliver", operation_id = "redeliverWebhookEvent", tag = "Webhooks",
    summary = "Redeliver an event",
    description = "Adds the event to the end of its key's queue again, in any status: with the same \
        id and body, signed only with the current secret, and with the whole schedule of attempts. Each \
        call adds it once more, at most five times per event. _meta.message describes the next step.",
    params(("id" = EventId, Path, description = "The event's id.")),
    request_body(content = Option<NoBody>, description = "No body, or an empty object."),
    responses((status = 200, description = "The event is queued.", body = QueuedEventAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND", "WEBHOOK_NOT_CONFIGURED", "WEBHOOK_REPLAY_LIMIT_REACHED"]))),
)]
pub async fn redeliver(
    State(app): State<Shared>,
    caller: Caller<WebhooksManage>,
    id: PathId,
    _: Query<NoParameters>,
    meta: Meta,
    _: NoBody,
) -> Result<Single<QueuedEvent>, Problem> {
    // A malformed id is not found, like an unknown one.
    let id: EventId = id.parse()?;
    let caller = caller.into_inner();
    let queued = app.mutate(|app| async move { app::webhooks::redeliver(&app.ctx, &caller, id).await });
    let queued = queued.await?;
    Ok(meta.message("The replay is queued after the key's other events.").single("event", queued.into()))
}

/// `POST /v1/webhooks/test`: 200, `event` and a message.
#[utoipa::path(
    post, path = "/v1/webhooks/test", operation_id = "sendTestWebhook", tag = "Webhooks", summary = "Send a test event",
    description = "Queues an event of the type webhook.test for the calling key's webhook. It is signed, \
        retried and listed like any other event. Its data only has the member test.",
    request_body(content = Option<NoBody>, description = "No body, or an empty object."),
    responses((status = 200, description = "The test is queued.", body = QueuedEventAnswer)),
    extensions(("x-error-codes" = json!(["WEBHOOK_NOT_CONFIGURED"]))),
)]
pub async fn test(
    State(app): State<Shared>,
    caller: Caller<WebhooksManage>,
    _: Query<NoParameters>,
    meta: Meta,
    _: NoBody,
) -> Result<Single<QueuedEvent>, Problem> {
    let caller = caller.into_inner();
    let queued = app.mutate(|app| async move { app::webhooks::send_test(&app.ctx, &caller).await });
    let queued = queued.await?;
    Ok(meta.message("The test is queued after the key's other events.").single("event", queued.into()))
}
