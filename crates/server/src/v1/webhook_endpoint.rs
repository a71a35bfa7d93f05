//! The calling key's receiver: how it does, and what holds its queue back.

use app::webhooks::Endpoint;
use axum::extract::State;
use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId};
use domain::webhook::Admission;
use serde::Serialize;
use store::keys::Key;
use utoipa::ToSchema;

use crate::http::{Caller, Meta, NoParameters, Problem, Query, Shared, Single, WebhooksManage};
use crate::openapi::answers::answers;

answers! {
    /// The calling key's receiver.
    EndpointAnswer = single("endpoint", EndpointRecord);
}

/// A key's receiver. Events are sent one at a time, in order: what cannot be delivered holds back what is behind it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
#[serde(rename_all = "camelCase")]
pub struct EndpointRecord {
    api_key_id: KeyId,
    /// Null where events are not sent.
    url: Option<String>,
    breaker: BreakerRecord,
    queue: QueueRecord,
    secret: SecretRecord,
}

/// Whether the receiver is being spared after failures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookBreaker)]
#[serde(rename_all = "camelCase")]
struct BreakerRecord {
    /// `closed`: events are sent. `open`: nothing is sent until `openUntil`. `half_open`: the next attempt decides.
    #[schema(value_type = String, extensions(("x-extensible-enum" = json!(["closed", "open", "half_open"]))))]
    state: &'static str,
    open_until: Option<Timestamp>,
}

/// The events that wait.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookQueue)]
#[serde(rename_all = "camelCase")]
struct QueueRecord {
    /// All that wait, replays among them.
    waiting: u64,
    /// Those that wait for the head.
    behind_head: u64,
    /// The one that is sent next; null where nothing waits.
    head: Option<HeadRecord>,
}

/// What is sent next.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookQueueHead)]
#[serde(rename_all = "camelCase")]
struct HeadRecord {
    event_id: EventId,
    event_type: EventKind,
    /// Which replay of the event it is; 0 is the event itself.
    replay: u32,
    /// The attempts so far, of this replay alone.
    attempts: u32,
    /// Since when it is tried.
    since: Timestamp,
    /// The past means now.
    next_attempt_at: Timestamp,
}

/// When the secret changes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookSecretState)]
#[serde(rename_all = "camelCase")]
struct SecretRecord {
    /// Null where it is the one that the key was issued with.
    rotated_at: Option<Timestamp>,
    /// Until when the one before signs too; null where none does.
    previous_secret_expires_at: Option<Timestamp>,
}

/// `GET /v1/webhooks/endpoint`: the calling key's receiver.
#[utoipa::path(
    get, path = "/v1/webhooks/endpoint", operation_id = "getWebhookEndpoint", tag = "Webhooks", summary = "Read the calling key's receiver",
    description = "Where the calling key's events go, whether its receiver is being spared after failures, and what holds \
        its queue back: the event at its head, how many wait behind it, and when it is tried next.",
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
    fn new(key: &Key, endpoint: Endpoint, now: Timestamp) -> Self {
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
        let previous = endpoint.secrets.previous.map(|(_, until)| until).filter(|until| *until > now);
        Self {
            api_key_id: key.id,
            url: key.webhook_url.clone(),
            breaker: BreakerRecord { state, open_until },
            queue: QueueRecord {
                waiting: endpoint.waiting,
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
