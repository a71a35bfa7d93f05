//! Confirms trades that are held because of their value.

use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::ids::TradeId;
use http_kit::{
    Body, Caller, JsonBody, Meta, NoParameters, PathId, Problem, Query, Shared, TradeWritten, TradesWrite,
};
use protocol::document::Members;
use serde::Deserialize;
use utoipa::ToSchema;

use super::read::TradeAnswer;
use super::view::{FinalitySettings, TradeRecord};

/// The one-time token that releases a held trade.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ConfirmTradeRequest)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfirmBody {
    /// confirmation.token of the 202 response that created the trade.
    #[schema(required, value_type = String, example = "ct_4bYVPCtkQ5BQHyV9fDdSXTUP2rs5vVLS0sVCJTGhR2a")]
    token: Option<String>,
}

impl JsonBody for ConfirmBody {
    fn read(members: &mut Members<'_>) -> Self {
        let token = members.secret("token");
        Self { token: members.required("token", token, "a string") }
    }
}

/// `POST /v1/trades/{id}/confirm`: releases a held trade. Any key of the trade's user may confirm
/// it.
#[utoipa::path(
    post, path = "/v1/trades/{id}/confirm", operation_id = "confirmTrade", tag = "Trades",
    summary = "Confirm a held trade",
    description = "Releases a high-value trade that is held for confirmation. Any key of the trade's user \
        may confirm it, once, before confirmation.expiresAt. Checks, in this order: the trade exists, it \
        was held, its window is open, the token belongs to it, the token is unused. A trade that an agent \
        created is confirmed only by the owner of the account, on the trade's page.",
    params(("id" = TradeId, Path, description = "The trade's id.")),
    request_body(content = ConfirmBody, description = "The one-time token."),
    responses((status = 200, description = "The confirmed trade, pending.", body = TradeAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND", "TRADE_NOT_AWAITING_CONFIRMATION", "CONFIRMATION_EXPIRED",
        "CONFIRMATION_TOKEN_INVALID", "CONFIRMATION_TOKEN_USED", "OWNER_CONFIRMATION_REQUIRED", "API_TRADE_PROCESSING_HALTED", "API_KEY_PAUSED"]))),
)]
pub async fn confirm(
    State(app): State<Shared>,
    caller: Caller<TradesWrite>,
    PathId(id): PathId,
    _: Query<NoParameters>,
    meta: Meta,
    body: Body<ConfirmBody>,
) -> Result<impl IntoResponse, Problem> {
    let token = body.value.token.unwrap_or_default();
    let caller = caller.into_inner();
    let confirmed =
        app.mutate(|app| async move { app::trades::confirm(&app.ctx, &caller, &id, &token).await });
    let (trade, history) = confirmed.await?;
    let written = Extension(TradeWritten(trade.id));
    Ok((written, meta.single("trade", TradeRecord::now(trade, history, FinalitySettings::from(&app.ctx)))))
}
