//! The state of the calling key's webhook receiver, and of its delivery queue.

use app::webhooks::ReceiverState;
use axum::extract::State;
use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId};
use domain::webhook::Admission;
use http_kit::{Caller, Meta, NoParameters, Problem, Query, Shared, Single, WebhooksManage};
use serde::Serialize;
use store::keys::Key;
use utoipa::ToSchema;

use crate::openapi::answers::answers;

answers! {
    /// The calling key's webhook endpoint.
    EndpointAnswer = single("endpoint", EndpointRecord);
}

/// A key's webhook endpoint. Events are sent one at a time and in order: an event that cannot be
/// delivered holds back those behind it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
#[serde(rename_all = "camelCase")]
pub struct EndpointRecord {
    api_key_id: KeyId,
    /// Null if the key has no webhook URL.
    url: Option<String>,
    breaker: BreakerRecord,
    queue: QueueRecord,
    secret: SecretRecord,
}

/// The circuit breaker, which pauses deliveries after failures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookBreaker)]
#[serde(rename_all = "camelCase")]
struct BreakerRecord {
    /// `closed`: events are sent. `open`: nothing is sent until `openUntil`. `half_open`: the next
    /// attempt decides.
    #[schema(value_type = String, extensions(("x-extensible-enum" = json!(["closed", "open", "half_open"]))))]
    state: &'static str,
    open_until: Option<Timestamp>,
}

/// The events in the queue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookQueue)]
#[serde(rename_all = "camelCase")]
struct QueueRecord {
    /// The number of events in the queue, including redeliveries.
    waiting: u64,
    /// The number of events behind the head.
    behind_head: u64,
    /// The next event. Null if the queue is empty.
    head: Option<HeadRecord>,
}

/// The next event to send.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookQueueHead)]
#[serde(rename_all = "camelCase")]
struct HeadRecord {
    event_id: EventId,
    event_type: EventKind,
    /// The number of the replay. 0 is the event itself.
    replay: u32,
    /// The number of attempts of this delivery or redelivery so far.
    attempts: u32,
    /// The time at which the event happened or its redelivery was requested.
    since: Timestamp,
    /// The time of the next attempt. A time in the past means now.
    next_attempt_at: Timestamp,
}

/// The state of the webhook secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookSecretState)]
#[serde(rename_all = "camelCase")]
struct SecretRecord {
    /// The time of the last rotation. Null if the secret was never rotated.
    rotated_at: Option<Timestamp>,
    /// The time until which deliveries are also signed with the previous secret. Null if there is
    /// none.
    previous_secret_expires_at: Option<Timestamp>,
}

/// `GET /v1/webhooks/endpoint`: the calling key's receiver.
#[utoipa::path(
    get, path = "/v1/webhooks/endpoint", operation_id = "getWebhookEndpoint", tag = "Webhooks", summary = "Read the calling key's webhook endpoint",
    description = "The calling key's webhook URL, the state of its circuit breaker, and its queue: the \
        event at the head, the number of events that wait behind it, and the time of the next attempt.",
    responses((status = 200, description = "The receiver.", body = EndpointAnswer)),
)]
pub async fn endpoint(
    State(app): State<Shared>,
    caller: Caller<WebhooksManage>,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<EndpointRecord>, Problem> {
    let endpoint = app::webhooks::endpoint(&app.ctx, &caller).await?;
    Ok(meta.single("endpoint", EndpointRecord::new(&caller.key, endpoint, app.ctx.now())))
}

impl EndpointRecord {
    fn new(key: &Key, endpoint: ReceiverState, now: Timestamp) -> Self {
        let (state, open_until) = match endpoint.admission {
            Admission::Send => ("closed", None),
            Admission::Wait { until } => ("open", Some(until)),
            Admission::Probe => ("half_open", None),
        };
        let head = endpoint.head.map(|(head, next_attempt_at)| HeadRecord {
            event_id: head.event_id,
            event_type: head.kind,
            replay: head.replay,
            attempts: head.attempts,
            since: head.began_at,
            next_attempt_at,
        });
        // An expired secret may still be stored.
        let previous = endpoint.secrets.previous.map(|(_, until)| until).filter(|until| *until > now);
        Self {
            api_key_id: key.id,
            url: key.webhook_url.clone(),
            breaker: BreakerRecord { state, open_until },
            queue: QueueRecord {
                waiting: endpoint.waiting,
                // Without the head itself.
                behind_head: endpoint.waiting.saturating_sub(1),
                head,
            },
            secret: SecretRecord {
                rotated_at: endpoint.secrets.rotated_at,
                previous_secret_expires_at: previous,
            },
        }
    }
}
