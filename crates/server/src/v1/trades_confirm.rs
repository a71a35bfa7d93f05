//! Confirming a trade that is held for its value.

use app::{AppError, Submission};
use axum::extract::State;
use domain::ErrorCode;
use serde::Deserialize;

use super::trade_record::{Finality, TradeRecord};
use crate::http::{
    Body, Caller, Meta, NoParameters, PathId, Problem, Query, Shared, Single, Text, TradesWrite,
};

/// The one-time token of the answer that said that the trade is held.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfirmBody {
    token: Option<Text>,
}

/// `POST /v1/trades/{id}/confirm`: releases a held trade; 200 and the `trade`, `pending`.
///
/// Any key of the trade's user may confirm it. Refused, in this order: an id that is not there, a trade that was never
/// held, one whose window is over, a token that is not this trade's, one that was used. Every refusal says what became of
/// the trade in `extensions.submission`.
pub async fn confirm(
    State(app): State<Shared>,
    caller: Caller<TradesWrite>,
    PathId(id): PathId,
    _: Query<NoParameters>,
    meta: Meta,
    body: Body<ConfirmBody>,
) -> Result<Single<TradeRecord>, Problem> {
    let token = body.value.token.ok_or_else(|| AppError::field("/token", "is required: a string"))?;
    let caller = caller.into_inner();
    // Spawned: a client that hangs up must not leave half of it done.
    let state = Shared::clone(&app);
    let confirmed =
        app.mutations.spawn(async move { app::trades::confirm(&state.ctx, &caller, &id, &token.0).await });
    let (trade, history) = confirmed.await.map_err(lost)??;
    Ok(meta.single("trade", TradeRecord::now(trade, history, Finality::from(&app.ctx))))
}

/// The task panicked: whether it had released the trade by then is not known.
fn lost(error: tokio::task::JoinError) -> AppError {
    AppError::new(ErrorCode::InternalError).submission(Submission::Unknown).caused_by(error)
}
