//! Pausing the calling key's trading.

use axum::extract::State;
use domain::Timestamp;
use domain::ids::KeyId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{Caller, Meta, NoBody, NoParameters, Problem, Query, Shared, Single, TradesWrite};
use crate::openapi::answers::answers;

answers! {
    /// A paused key.
    PauseAnswer = single("pause", PauseRecord);
}

/// A paused key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pause)]
#[serde(rename_all = "camelCase")]
pub struct PauseRecord {
    api_key_id: KeyId,
    /// Always true.
    paused: bool,
    /// Since when; a second pause does not change it.
    paused_at: Timestamp,
}

/// `POST /v1/account/pause`: stops the trading of the key that calls, at once and until the operator resumes it. 200 and
/// `pause {apiKeyId, paused, pausedAt}`; calling it again changes nothing.
#[utoipa::path(
    post, path = "/v1/account/pause", operation_id = "pauseKey", tag = "Account", summary = "Pause the calling key's trading",
    description = "Stops the trading of the key that calls, at once: it creates and confirms no more trades, and trades of \
        its own that have not been sent are refused. It still reads. The web application or the operator resumes it. \
        Calling it again changes nothing.",
    request_body(content = Option<NoBody>, description = "Nothing, or an empty object."),
    responses((status = 200, description = "The key is paused.", body = PauseAnswer)),
)]
pub async fn pause(
    State(app): State<Shared>,
    caller: Caller<TradesWrite>,
    _: Query<NoParameters>,
    meta: Meta,
    _: NoBody,
) -> Result<Single<PauseRecord>, Problem> {
    let caller = caller.into_inner();
    let api_key_id = caller.key.id;
    let paused = app.mutate(|app| async move { app::keys::pause(&app.ctx, &caller).await });
    let paused_at = paused.await?;
    Ok(meta.single("pause", PauseRecord { api_key_id, paused: true, paused_at }))
}
