//! Creates trades.

use std::collections::BTreeMap;

use app::trades::{DryRun, NewTrade};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::ids::{CorrelationId, MarketId};
use domain::trade::{AmountType, Draft, FieldError, RequestRefusal, Side, TradeRequest, TradeWarning};
use domain::{Timestamp, Usdc, Wad};
use http_kit::{
    Body, Caller, IdempotencyKey, JsonBody, Meta, NoParameters, Problem, Query, Shared, Traceparent,
    TradesWrite,
};
use presentation::numbers;
use protocol::document::Members;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::create_answer::CreateAnswer;
use super::read::TradeAnswer;
use crate::openapi::answers::answers;
use crate::openapi::formats::{self, ClientRequestId, DecimalAmount};

answers! {
    /// The result that a trade would have.
    DryRunAnswer = single("dryRun", DryRunRecord);
    /// The existing trade, or the result that a trade would have.
    TradeOrDryRun = one_of(TradeAnswer, DryRunAnswer);
}

/// A trade create request. All missing and malformed members are reported together.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CreateTradeRequest, description = "A trade to create. Unknown members are rejected.")]
// `deny_unknown_fields` is for the schema only: `JsonBody` reads the body and reports all errors.
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateBody {
    /// The id of the market.
    #[schema(required, value_type = MarketId)]
    market_id: Option<String>,
    /// The index of the outcome. The first index is 0.
    #[schema(required, value_type = i64, minimum = 0)]
    outcome_index: Option<i64>,
    /// The amount to spend on a buy or to receive from a sale, in whole units of `amountType`.
    /// Required unless `amountType` is `all`. Must be above 0 and at most 10,000,000, with at most
    /// 6 decimals: more are rejected, never rounded.
    #[schema(value_type = Option<DecimalAmount>)]
    amount: Option<String>,
    /// Buy or sell.
    #[schema(required, value_type = Side)]
    side: Option<String>,
    /// Up to 50 strings of your own, returned with the trade. Keys have 1 to 64 characters from A-Z
    /// a-z 0-9 _ - and the full stop, values at most 500 characters.
    #[schema(value_type = Option<formats::Metadata>)]
    metadata: Option<BTreeMap<String, String>>,
    /// Your own id of the trade. Repeating the id with the same content returns the same trade. It
    /// does not expire.
    #[schema(value_type = Option<ClientRequestId>)]
    client_request_id: Option<String>,
    /// The minimum of tokens to receive. A buy that would bring fewer is not executed.
    #[schema(value_type = Option<Wad>)]
    min_tokens_out: Option<String>,
    /// The maximum of tokens to give. A sale that would take more is not executed.
    #[schema(value_type = Option<Wad>)]
    max_tokens_in: Option<String>,
    /// The maximum slippage from the quote at acceptance, in hundredths of a percent (0 to 10000).
    /// The default is 200 unless the operator has set another; it applies if no member bounds the
    /// price. 10000 trades at any price.
    #[schema(minimum = 0, maximum = 10000)]
    max_slippage_bps: Option<i64>,
    /// The time after which the trade is no longer executed.
    #[schema(value_type = Option<Timestamp>)]
    deadline: Option<String>,
    /// The unit of `amount`. The default is `usdc`.
    #[schema(value_type = Option<AmountType>)]
    amount_type: Option<String>,
    /// If true, the service makes every check and returns the result, but creates nothing.
    dry_run: Option<bool>,
}

impl JsonBody for CreateBody {
    fn read(members: &mut Members<'_>) -> Self {
        Self {
            market_id: members.text("marketId"),
            outcome_index: members.integer("outcomeIndex"),
            amount: members.text("amount"),
            side: members.text("side"),
            metadata: members.text_map("metadata"),
            client_request_id: members.text("clientRequestId"),
            min_tokens_out: members.text("minTokensOut"),
            max_tokens_in: members.text("maxTokensIn"),
            max_slippage_bps: members.integer("maxSlippageBps"),
            deadline: members.text("deadline"),
            amount_type: members.text("amountType"),
            dry_run: members.flag("dryRun"),
        }
    }

    fn wrong_values(&self) -> Vec<FieldError> {
        match TradeRequest::new(self.draft()) {
            Err(RequestRefusal::Fields(errors)) => errors,
            // A too large amount has its own code and is reported later, in the documented order.
            Err(RequestRefusal::AmountTooLarge) | Ok(_) => Vec::new(),
        }
    }
}

impl CreateBody {
    /// Returns the trade to create, which is not validated yet.
    pub(super) fn new_trade(
        &self,
        idempotency_key: Option<String>,
        correlation_id: Option<CorrelationId>,
    ) -> NewTrade {
        let dry_run = self.dry_run.unwrap_or(false);
        NewTrade { draft: self.draft(), idempotency_key, dry_run, correlation_id }
    }

    fn draft(&self) -> Draft {
        Draft {
            market_id: self.market_id.clone(),
            outcome_index: self.outcome_index,
            amount: self.amount.clone(),
            side: self.side.clone(),
            metadata: self.metadata.clone(),
            client_request_id: self.client_request_id.clone(),
            min_tokens_out: self.min_tokens_out.clone(),
            max_tokens_in: self.max_tokens_in.clone(),
            max_slippage_bps: self.max_slippage_bps,
            deadline: self.deadline.clone(),
            amount_type: self.amount_type.clone(),
        }
    }
}

/// The result that a trade would have now, with the values of the request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DryRun)]
#[serde(rename_all = "camelCase")]
pub struct DryRunRecord {
    dry_run: bool,
    market_id: MarketId,
    outcome_index: i64,
    #[schema(value_type = Option<DecimalAmount>)]
    amount: Option<String>,
    amount_type: AmountType,
    side: Side,
    /// The maximum slippage from the quote, in hundredths of a percent (0 to 10000).
    #[schema(minimum = 0, maximum = 10000)]
    max_slippage_bps: Option<u16>,
    #[schema(value_type = formats::Metadata)]
    metadata: BTreeMap<String, String>,
    #[schema(value_type = Option<ClientRequestId>)]
    client_request_id: Option<String>,
    /// True if the trade would be held for confirmation.
    requires_confirmation: bool,
    quote: DryRunQuote,
    /// What to know before the trade, which would be accepted all the same.
    warnings: Vec<TradeWarning>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DryRunQuote {
    tokens_out: Wad,
    usdc_amount: Usdc,
    fee: Usdc,
    effective_price: Option<f64>,
    /// USDC that the trade would reserve of the balance and the daily cap.
    reserved_usdc: Usdc,
}

impl From<DryRun> for DryRunRecord {
    fn from(dry: DryRun) -> Self {
        let warnings = dry.warnings();
        let DryRun { request, market, plan, quote, is_held } = dry;
        let (tokens_out, usdc_amount) = (Wad(quote.tokens_wad), Usdc::from_atomic(quote.usdc_atomic));
        Self {
            dry_run: true,
            market_id: market.id,
            outcome_index: request.outcome_index,
            amount: (!request.amount_text.is_empty()).then_some(request.amount_text),
            amount_type: request.amount_type,
            side: request.side,
            max_slippage_bps: plan.slippage_bps,
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
            warnings,
        }
    }
}

/// `POST /v1/trades`: creates a trade.
///
/// - 201: a new trade, `pending`; or a replay by `Idempotency-Key`, with the trade as it was
///   created.
/// - 202: a new trade of high value, `pending_confirmation`, with its confirmation token; or a
///   replay while it is held.
/// - 200: a replay by `clientRequestId`, or of a trade that is no longer held, with the current
///   trade; or a dry run.
#[utoipa::path(
    post, path = "/v1/trades", operation_id = "createTrade", tag = "Trades", summary = "Create a trade",
    description = "Checks the trade, reserves the funds and returns while the trade is pending. The trade \
        is then executed on chain. Send an Idempotency-Key or a clientRequestId, so that you can repeat \
        the request after a lost response without creating a second trade. Replays are recognised before \
        the market, the caps and the balance are checked.",
    params(
        ("Idempotency-Key" = Option<String>, Header,
            pattern = "^([A-Za-z0-9_.:-]{1,255}|\"[A-Za-z0-9_.:-]{1,255}\")$", example = "5f0c9a52-6b1e-4f3c-9f5e-0d9a3c1b2e4f",
            description = "A new text for each operation, preferably a random UUID. The same key and body \
                return the first response for 24 hours; the same key with another body is rejected."),
        ("traceparent" = Option<String>, Header,
            example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            description = "Your W3C trace context. Its trace id becomes the trade's correlationId. Ignored \
                if it is malformed."),
    ),
    request_body(content = CreateBody, description = "The trade."),
    responses(
        (status = 201, description = "The trade was created. If an earlier request with the same \
            Idempotency-Key created it, the response is that of the first request, and _meta.idempotent is \
            true.", body = TradeAnswer,
            headers(("Idempotent-Replayed" = String, description = "true if the response repeats an earlier one."))),
        (status = 202, description = "The trade was created, by this request or an earlier one with the \
            same Idempotency-Key or clientRequestId, and is held for confirmation. confirmation contains \
            the token. If an agent created the trade, confirmationPage is the page on which the owner of \
            the account confirms it, and there is no token.",
            body = TradeAnswer,
            headers(("Idempotent-Replayed" = String, description = "true if the response repeats an earlier one."))),
        (status = 200, description = "The current state of the trade with the same clientRequestId or, \
            with dryRun, the result that the trade would have.", body = TradeOrDryRun,
            headers(("Idempotent-Replayed" = String, description = "true if the response repeats an earlier one."))),
    ),
    extensions(("x-error-codes" = json!(["IDEMPOTENCY_KEY_CONFLICT", "IDEMPOTENCY_KEY_FORMAT_INVALID",
        "IDEMPOTENCY_KEY_TOO_LONG", "CLIENT_REQUEST_ID_CONFLICT", "AMOUNT_TOO_LARGE", "AMOUNT_TOO_SMALL", "MARKET_NOT_FOUND",
        "MARKET_NOT_TRADEABLE", "CHAIN_NOT_SUPPORTED", "OUTCOME_INDEX_INVALID", "SMART_ACCOUNT_NOT_PROVISIONED",
        "WALLET_DELEGATION_NOT_ENABLED", "SPENDING_LIMIT_EXCEEDED", "INSUFFICIENT_BALANCE", "SLIPPAGE_EXCEEDED",
        "LIQUIDITY_INSUFFICIENT", "API_TRADE_PROCESSING_HALTED", "API_KEY_PAUSED"]))),
)]
pub async fn create(
    State(app): State<Shared>,
    caller: Caller<TradesWrite>,
    _: Query<NoParameters>,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Traceparent(correlation_id): Traceparent,
    meta: Meta,
    body: Body<CreateBody>,
) -> Result<Response, Problem> {
    let new = body.value.new_trade(idempotency_key, correlation_id);
    let caller = caller.into_inner();
    // In its own task, so that a client that hangs up cannot leave a half-created trade.
    let creator = caller.clone();
    let created = app.mutate(|app| async move { app::trades::create(&app.ctx, &creator, new).await });
    Ok(CreateAnswer::new(&app, &caller, created.await?, meta).await?.into_response())
}
