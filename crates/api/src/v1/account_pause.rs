//! Pauses trading of the calling key.

use axum::extract::State;
use domain::Timestamp;
use domain::ids::KeyId;
use http_kit::{Caller, Meta, NoBody, NoParameters, Problem, Query, Shared, Single, TradesWrite};
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::answers::answers;

answers! {
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
    /// The time of the pause. Pausing again does not change it.
    paused_at: Timestamp,
}

/// `POST /v1/account/pause`: stops trading with the calling key at once, until the operator resumes
/// it. Calling it again changes nothing.
#[utoipa::path(
    post, path = "/v1/account/pause", operation_id = "pauseKey", tag = "Account", summary = "Pause the calling key's trading",
    description = "Stops trading with the calling key at once: it can no longer create or confirm trades, \
        and its trades that have not been sent to the chain are rejected. Reads still work. Only the web \
        application or the operator can resume the key. Calling this route again changes nothing.",
    request_body(content = Option<NoBody>, description = "No body, or an empty object."),
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
