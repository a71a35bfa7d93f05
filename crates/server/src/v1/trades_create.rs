//! Creating a trade.

use std::collections::BTreeMap;

use app::trades::{Accepted, DryRun, NewTrade, confirmation_of};
use app::{AppError, Submission};
use axum::extract::State;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ids::MarketId;
use domain::trade::{AmountType, Draft, Side};
use domain::{ErrorCode, Usdc, Wad};
use serde::{Deserialize, Serialize};
use store::StoreError;
use store::trades::{History, Trade};

use super::numbers;
use super::trade_record::{Finality, TradeRecord};
use crate::http::{
    Body, Caller, IdempotencyKey, Meta, Metadata, NoParameters, Problem, Query, Shared, Text, Traceparent,
    TradesWrite,
};

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A trade create request. Which members are missing or malformed is judged all at once, after replays.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateBody {
    market_id: Option<Text>,
    outcome_index: Option<i64>,
    amount: Option<Text>,
    side: Option<Text>,
    metadata: Option<Metadata>,
    client_request_id: Option<Text>,
    min_tokens_out: Option<Text>,
    max_tokens_in: Option<Text>,
    max_slippage_bps: Option<i64>,
    deadline: Option<Text>,
    amount_type: Option<Text>,
    dry_run: Option<bool>,
}

impl CreateBody {
    fn into_draft(self) -> Draft {
        let text = |text: Option<Text>| text.map(|text| text.0);
        Draft {
            market_id: text(self.market_id),
            outcome_index: self.outcome_index,
            amount: text(self.amount),
            side: text(self.side),
            metadata: self.metadata.map(|metadata| metadata.0),
            client_request_id: text(self.client_request_id),
            min_tokens_out: text(self.min_tokens_out),
            max_tokens_in: text(self.max_tokens_in),
            max_slippage_bps: self.max_slippage_bps,
            deadline: text(self.deadline),
            amount_type: text(self.amount_type),
        }
    }
}

/// What a trade would do: the request's echo, and what would move at this moment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DryRunRecord {
    dry_run: bool,
    market_id: MarketId,
    outcome_index: i64,
    amount: Option<String>,
    amount_type: AmountType,
    side: Side,
    metadata: BTreeMap<String, String>,
    client_request_id: Option<String>,
    /// Whether the trade would be held for confirmation.
    requires_confirmation: bool,
    quote: DryRunQuote,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DryRunQuote {
    tokens_out: Wad,
    usdc_amount: Usdc,
    fee: Usdc,
    effective_price: Option<f64>,
    /// What would be set aside of balance and daily cap.
    reserved_usdc: Usdc,
}

impl From<DryRun> for DryRunRecord {
    fn from(dry: DryRun) -> Self {
        let DryRun { request, market, plan, quote, is_held } = dry;
        let (tokens_out, usdc_amount) = (Wad(quote.tokens_wad), Usdc::from_atomic(quote.usdc_atomic));
        Self {
            dry_run: true,
            market_id: market.id,
            outcome_index: request.outcome_index,
            amount: (!request.amount_text.is_empty()).then_some(request.amount_text),
            amount_type: request.amount_type,
            side: request.side,
            metadata: request.metadata,
            client_request_id: request.client_request_id,
            requires_confirmation: is_held,
            quote: DryRunQuote {
                tokens_out,
                usdc_amount,
                fee: Usdc::from_atomic(quote.fee_atomic),
                effective_price: numbers::per_token(usdc_amount, tokens_out),
                reserved_usdc: plan.reserved,
            },
        }
    }
}

/// `POST /v1/trades`: creates a trade.
///
/// - 201 and `trade`: a new trade, `pending`; or the same `Idempotency-Key` and body again, with the trade as it was
///   created, `_meta.idempotent` true and `Idempotent-Replayed: true`.
/// - 202 and `trade` with `confirmation {token, expiresAt}`: a new trade of high value, `pending_confirmation`; or the
///   same key or `clientRequestId` and body again while it is held, with the same token.
/// - 200 and `trade`: the same `clientRequestId` and body again, with the trade as it is now; and the same key again
///   after a held trade was confirmed or its window was over.
/// - 200 and `dryRun` (and the same under `data`): with `"dryRun": true`, every check was made and nothing created; the
///   request's fields, `requiresConfirmation`, and `quote {tokensOut, usdcAmount, fee, effectivePrice, reservedUsdc}`.
pub async fn create(
    State(app): State<Shared>,
    caller: Caller<TradesWrite>,
    _: Query<NoParameters>,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Traceparent(correlation_id): Traceparent,
    meta: Meta,
    body: Body<CreateBody>,
) -> Result<Response, Problem> {
    let dry_run = body.value.dry_run.unwrap_or(false);
    let new = NewTrade { draft: body.value.into_draft(), idempotency_key, dry_run, correlation_id };
    let caller = caller.into_inner();
    // Spawned: a client that hangs up must not leave half of it done.
    let state = Shared::clone(&app);
    let created = app.mutations.spawn(async move { app::trades::create(&state.ctx, &caller, new).await });
    let finality = Finality::from(&app.ctx);
    let (status, record, is_replay) = match created.await.map_err(lost)?? {
        Accepted::Created(trade) => match confirmation_of(&app.ctx, &trade) {
            Some(held) => (StatusCode::ACCEPTED, TradeRecord::held(trade, held, finality), false),
            None => (StatusCode::CREATED, TradeRecord::as_created(trade, finality), false),
        },
        Accepted::ReplayedByKey(trade) if trade.held_until.is_none() => {
            (StatusCode::CREATED, TradeRecord::as_created(trade, finality), true)
        }
        Accepted::ReplayedByKey(trade) | Accepted::FoundByClientRequest(trade) => {
            match confirmation_of(&app.ctx, &trade) {
                Some(held) => (StatusCode::ACCEPTED, TradeRecord::held(trade, held, finality), true),
                None => {
                    let history = history(&app, &trade).await?;
                    (StatusCode::OK, TradeRecord::now(trade, history, finality), true)
                }
            }
        }
        Accepted::DryRun(dry) => {
            let record = DryRunRecord::from(*dry);
            return Ok(meta.idempotent(false).single("dryRun", record).into_response());
        }
    };
    let replayed = is_replay.then_some([(IDEMPOTENT_REPLAYED, "true")]);
    Ok((status, replayed, meta.idempotent(is_replay).single("trade", record)).into_response())
}

async fn history(app: &Shared, trade: &Trade) -> Result<History, StoreError> {
    app.ctx.store.read(trade.id, |tx, id| Box::pin(store::trades::history(tx, *id))).await
}

/// The task panicked: whether it had stored the trade by then is not known.
fn lost(error: tokio::task::JoinError) -> AppError {
    AppError::new(ErrorCode::InternalError).submission(Submission::Unknown).caused_by(error)
}
