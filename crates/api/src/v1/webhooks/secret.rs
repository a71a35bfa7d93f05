//! Rotates the secret that signs the calling key's webhook deliveries.

use axum::extract::State;
use domain::Timestamp;
use http_kit::{Caller, Meta, NoBody, NoParameters, Problem, Query, Shared, Single, WebhooksManage};
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::answers::answers;

answers! {
    WebhookSecretAnswer = single("webhookSecret", WebhookSecretRecord);
}

/// A new webhook secret. It is only returned once.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSecret)]
#[serde(rename_all = "camelCase")]
pub struct WebhookSecretRecord {
    #[schema(pattern = "^whsec_[A-Za-z0-9+/]{43}=$")]
    secret: String,
    rotated_at: Timestamp,
    /// The time until which deliveries are also signed with the previous secret.
    previous_secret_expires_at: Timestamp,
}

/// Omits the secret, so that it does not appear in logs.
impl std::fmt::Debug for WebhookSecretRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WebhookSecretRecord({})", self.rotated_at)
    }
}

/// `POST /v1/auth/api-keys/me/webhook-secret/rotate`: replaces the secret and shows the new one
/// once.
#[utoipa::path(
    post, path = "/v1/auth/api-keys/me/webhook-secret/rotate", operation_id = "rotateWebhookSecret", tag = "Webhooks",
    summary = "Rotate the calling key's webhook secret",
    description = "Replaces the secret that signs the calling key's deliveries, and returns the new one, \
        once. For seven days deliveries have a signature by each of the two secrets, the new one first; \
        redeliveries are only signed with the new one. Each call rotates the secret. A second call within \
        60 seconds is rejected.",
    request_body(content = Option<NoBody>, description = "No body, or an empty object."),
    responses((status = 200, description = "The new secret.", body = WebhookSecretAnswer)),
    extensions(("x-error-codes" = json!(["WEBHOOK_SECRET_ROTATION_COOLDOWN"]))),
)]
pub async fn rotate(
    State(app): State<Shared>,
    caller: Caller<WebhooksManage>,
    _: Query<NoParameters>,
    meta: Meta,
    _: NoBody,
) -> Result<Single<WebhookSecretRecord>, Problem> {
    let caller = caller.into_inner();
    let rotated = app.mutate(|app| async move { app::webhooks::rotate_secret(&app.ctx, &caller).await });
    let rotated = rotated.await?;
    let record = WebhookSecretRecord {
        secret: rotated.secret.expose().to_owned(),
        rotated_at: rotated.rotated_at,
        previous_secret_expires_at: rotated.previous_expires_at,
    };
    Ok(meta.single("webhookSecret", record))
}
