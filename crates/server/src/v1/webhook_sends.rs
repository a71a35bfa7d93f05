//! Having an event sent: one that happened once more, or one that tells nothing.

use axum::extract::State;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId};
use domain::{ErrorCode, Timestamp};
use serde::Serialize;
use store::webhooks::Delivery;
use utoipa::ToSchema;

use crate::http::{
    Caller, Meta, NoBody, NoParameters, PathId, Problem, Query, Shared, Single, WebhooksManage,
};
use crate::openapi::answers::answers;

answers! {
    /// A queued event.
    QueuedEventAnswer = single("event", QueuedEvent);
}

/// An event that stands at the end of its key's queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedEvent {
    id: EventId,
    event_type: EventKind,
    api_key_id: KeyId,
    /// The trade it tells of; null for a test.
    trade_request_id: Option<TradeId>,
    emitted_at: Timestamp,
    /// When it was acknowledged last, if ever.
    last_delivered_at: Option<Timestamp>,
    /// The attempts so far.
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

/// `POST /v1/webhooks/events/{id}/redeliver`: 200, `event` and a message. Each call queues it once more.
#[utoipa::path(
    post, path = "/v1/webhooks/events/{id}/redeliver", operation_id = "redeliverWebhookEvent", tag = "Webhooks",
    summary = "Send an event again",
    description = "Puts the event at the end of its key's queue once more, whatever became of it: same id, same body, signed \
        with the current secret alone, tried by the whole schedule. Each call does so; an event can be sent again five \
        times. _meta.message says what happens next.",
    params(("id" = EventId, Path, description = "The event's id.")),
    request_body(content = Option<NoBody>, description = "Nothing, or an empty object."),
    responses((status = 200, description = "The event is queued.", body = QueuedEventAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND", "WEBHOOK_NOT_CONFIGURED", "WEBHOOK_REPLAY_LIMIT_REACHED"]))),
)]
pub async fn redeliver(
    State(app): State<Shared>,
    caller: Caller<WebhooksManage>,
    PathId(id): PathId,
    _: Query<NoParameters>,
    meta: Meta,
    _: NoBody,
) -> Result<Single<QueuedEvent>, Problem> {
    let id: EventId = id.parse().map_err(|_| Problem::new(ErrorCode::ResourceNotFound))?;
    let user_id = caller.user_id();
    let queued = app.mutate(|app| async move { app::webhooks::redeliver(&app.ctx, user_id, id).await });
    let queued = queued.await?;
    Ok(meta.message("The replay is queued behind the key's other events.").single("event", queued.into()))
}

/// `POST /v1/webhooks/test`: 200, `event` and a message.
#[utoipa::path(
    post, path = "/v1/webhooks/test", operation_id = "sendTestWebhook", tag = "Webhooks", summary = "Send a test event",
    description = "Queues an event of the type webhook.test for the receiver of the calling key: signed, tried and listed \
        like any other. Its data says test and nothing else.",
    request_body(content = Option<NoBody>, description = "Nothing, or an empty object."),
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
    Ok(meta.message("The test is queued behind the key's other events.").single("event", queued.into()))
}
