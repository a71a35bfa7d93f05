//! Creates several trades with one request.

use std::borrow::Cow;

use app::AppError;
use app::limits::LimitKind;
use app::trades::{Accepted, NewTrade, create, in_turns};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use domain::ids::CorrelationId;
use domain::trade::FieldError;
use futures::future::join_all;
use http_kit::{
    Body, Caller, Drawn, IdempotencyKey, JsonBody, Meta, NoParameters, Problem, Query, RequestId, Shared,
    Traceparent, TradesWrite, draw_further, read_object,
};
use protocol::document::{DocumentNode, Members};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema};

use super::create::{CreateBody, TradeOrDryRun};
use super::create_answer::{CreateAnswer, CreateAnswerBody};
use crate::openapi::answers::answers;
use crate::openapi::formats::IdempotencyKeyText;

/// The maximum number of trades in one request.
const MAX_TRADES: usize = 20;
const PATH: &str = "/v1/trades/batch";

answers! {
    /// One result per trade, in the order of the request.
    BatchAnswer = plain(TradeResult);
}

/// Trades to create.
#[derive(Debug)]
pub struct BatchBody {
    trades: Option<Vec<DocumentNode>>,
}

impl utoipa::PartialSchema for BatchBody {
    fn schema() -> RefOr<Schema> {
        let trades = ArrayBuilder::new()
            .description(Some("1 to 20 trades. Each is checked, created and answered separately."))
            .items(Ref::from_schema_name(TradeItem::name()))
            .min_items(Some(1))
            .max_items(Some(MAX_TRADES));
        ObjectBuilder::new()
            .description(Some("Trades to create."))
            .property("trades", trades)
            .required("trades")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .into()
    }
}

impl ToSchema for BatchBody {
    fn name() -> Cow<'static, str> {
        "CreateTradesRequest".into()
    }

    fn schemas(out: &mut Vec<(String, RefOr<Schema>)>) {
        out.push((TradeItem::name().into_owned(), <TradeItem as utoipa::PartialSchema>::schema()));
        TradeItem::schemas(out);
    }
}

impl JsonBody for BatchBody {
    fn read(members: &mut Members<'_>) -> Self {
        let trades = members.items("trades");
        Self { trades: members.required("trades", trades, "a list of 1 to 20 trades") }
    }

    fn wrong_values(&self) -> Vec<FieldError> {
        self.wrong_number().into_iter().collect()
    }
}

impl BatchBody {
    fn wrong_number(&self) -> Option<FieldError> {
        let count = self.trades.as_ref().map_or(0, Vec::len);
        let detail = || format!("must have 1 to {MAX_TRADES} items, got {count}");
        (count == 0 || count > MAX_TRADES).then(|| FieldError::new("/trades", detail()))
    }

    fn into_trades(self) -> Result<Vec<DocumentNode>, AppError> {
        match self.wrong_number() {
            Some(error) => Err(AppError::validation(&[error])),
            None => Ok(self.trades.unwrap_or_default()),
        }
    }
}

/// One trade of a batch: the body of a single trade, and its idempotency key.
#[derive(Debug)]
pub struct TradeItem {
    idempotency_key: Option<String>,
    trade: CreateBody,
}

impl JsonBody for TradeItem {
    fn read(members: &mut Members<'_>) -> Self {
        Self { idempotency_key: members.text("idempotencyKey"), trade: CreateBody::read(members) }
    }

    fn wrong_values(&self) -> Vec<FieldError> {
        self.trade.wrong_values()
    }
}

impl TradeItem {
    fn into_trade(self, correlation_id: Option<CorrelationId>) -> Result<NewTrade, AppError> {
        let key = self.idempotency_key.map(|key| key.parse::<protocol::IdempotencyKey>()).transpose();
        let key = key.map_err(AppError::new)?.map(protocol::IdempotencyKey::into_string);
        Ok(self.trade.new_trade(key, correlation_id))
    }
}

/// The schema of a single trade with one more property, so that the two cannot diverge.
impl utoipa::PartialSchema for TradeItem {
    fn schema() -> RefOr<Schema> {
        let mut schema = <CreateBody as utoipa::PartialSchema>::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            let key = RefOr::Ref(Ref::from_schema_name(IdempotencyKeyText::name()));
            object.properties.insert("idempotencyKey".to_owned(), key);
            object.description = Some("A trade to create. Unknown members are rejected.".to_owned());
        }
        schema
    }
}

impl ToSchema for TradeItem {
    fn name() -> Cow<'static, str> {
        "BatchTrade".into()
    }

    fn schemas(out: &mut Vec<(String, RefOr<Schema>)>) {
        out.push((
            IdempotencyKeyText::name().into_owned(),
            <IdempotencyKeyText as utoipa::PartialSchema>::schema(),
        ));
        CreateBody::schemas(out);
    }
}

/// The answer to one trade of a batch: either `body` or `problem`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchTradeResult)]
#[serde(rename_all = "camelCase")]
pub struct TradeResult {
    /// The status that `POST /v1/trades` returns for this trade.
    #[schema(minimum = 200, maximum = 599)]
    status: u16,
    /// The body that `POST /v1/trades` returns for this trade.
    #[schema(value_type = TradeOrDryRun, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<CreateAnswerBody>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<TradeProblem>,
    /// Seconds to wait before this trade is sent again. Only set if waiting helps.
    #[schema(nullable = false, minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
}

/// The error of one trade, as a problem document.
#[derive(Debug)]
struct TradeProblem {
    problem: Problem,
    docs_url: String,
    request_id: RequestId,
}

/// Refers to the document's schema of problems, which replaces this one.
impl utoipa::PartialSchema for TradeProblem {
    fn schema() -> RefOr<Schema> {
        RefOr::T(Schema::Object(ObjectBuilder::new().build()))
    }
}

impl ToSchema for TradeProblem {
    fn name() -> Cow<'static, str> {
        "Problem".into()
    }
}

impl Serialize for TradeProblem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.problem.body(&self.docs_url, PATH, self.request_id).serialize(serializer)
    }
}

impl TradeResult {
    fn of(app: &Shared, request_id: RequestId, answer: Result<CreateAnswer, Problem>) -> Self {
        match answer {
            Ok(CreateAnswer { status, body, .. }) => {
                Self { status: status.as_u16(), body: Some(body), problem: None, retry_after: None }
            }
            Err(problem) => {
                let problem = problem.of_write();
                problem.log(PATH, request_id);
                let (status, retry_after) = (problem.code().status(), problem.retry_after_s());
                let docs_url = app.docs_url.clone();
                let problem = Some(TradeProblem { problem, docs_url, request_id });
                Self { status, body: None, problem, retry_after }
            }
        }
    }
}

/// `POST /v1/trades/batch`: creates up to 20 trades. Its status is 200 if the list is well-formed,
/// whatever the results of the trades are.
#[utoipa::path(
    post, path = "/v1/trades/batch", operation_id = "createTrades", tag = "Trades",
    summary = "Create up to 20 trades",
    description = "Creates each trade as POST /v1/trades does, with its own idempotencyKey and \
        clientRequestId. Each costs one request of the rate limit. A rejected trade changes nothing for \
        the others. The response is 200 with one result per trade, in the order of the request; read the \
        status of each.",
    params(
        ("traceparent" = Option<String>, Header,
            example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            description = "Your W3C trace context. Its trace id becomes the correlationId of all trades. \
                Ignored if it is malformed."),
    ),
    request_body(content = BatchBody, description = "The trades."),
    responses((status = 200, description = "One result per trade.", body = BatchAnswer)),
    extensions(("x-error-codes" = json!(["IDEMPOTENCY_KEY_FORMAT_INVALID", "API_TRADE_PROCESSING_HALTED"]))),
)]
pub async fn create_batch(
    State(app): State<Shared>,
    caller: Caller<TradesWrite>,
    _: Query<NoParameters>,
    (IdempotencyKey(header), Traceparent(correlation_id)): (IdempotencyKey, Traceparent),
    request_id: RequestId,
    meta: Meta,
    body: Body<BatchBody>,
) -> Result<Response, Problem> {
    if header.is_some() {
        // Ignoring it would let a retry create every trade twice.
        let detail =
            "A batch has no key of its own. Send an idempotencyKey in each trade instead of the header.";
        return Err(AppError::new(ErrorCode::IdempotencyKeyFormatInvalid).detail(detail).into());
    }
    let nodes = body.value.into_trades()?;
    // Rejects the whole list instead of each trade.
    let switches = &app.ctx.process.switches;
    switches.check_new_trade().map_err(|e| e.submission(app::Submission::NotSubmitted))?;
    let caller = caller.into_inner();
    // The guard has counted the first trade.
    let drawn = draw_further(&app, LimitKind::Write, &caller, nodes.len() - 1).await;
    let trades = read_trades(nodes, &drawn, correlation_id);
    // In its own task, so that a client that hangs up cannot leave a part of the list uncreated.
    let creator = caller.clone();
    let created = app.mutate(|app| async move { Ok(create_all(&app, &creator, trades).await) }).await?;
    let mut results = Vec::with_capacity(created.len());
    for accepted in created {
        let answer = match accepted {
            Ok(accepted) => CreateAnswer::new(&app, &caller, accepted, meta).await,
            Err(problem) => Err(problem),
        };
        results.push(TradeResult::of(&app, request_id, answer));
    }
    Ok((drawn, meta.plain(results)).into_response())
}

/// Reads each trade that got a token of the rate limit.
fn read_trades(
    nodes: Vec<DocumentNode>,
    drawn: &Drawn,
    correlation_id: Option<CorrelationId>,
) -> Vec<Result<NewTrade, Problem>> {
    let read = |(index, node): (usize, DocumentNode)| match &drawn.refusal {
        Some(refusal) if index > drawn.parts => Err(refusal.clone()),
        _ => {
            let item = read_object::<TradeItem>(node).map_err(|errors| AppError::validation(&errors));
            Ok(item.and_then(|item| item.into_trade(correlation_id))?)
        }
    };
    nodes.into_iter().enumerate().map(read).collect()
}

/// Creates all readable trades at the same time, but those with a common name in their order.
async fn create_all(
    app: &Shared,
    caller: &app::caller::Caller,
    trades: Vec<Result<NewTrade, Problem>>,
) -> Vec<Result<Accepted, Problem>> {
    let turns = in_turns(&trades.iter().map(|trade| trade.as_ref().ok()).collect::<Vec<_>>());
    let mut trades: Vec<_> = trades.into_iter().map(Some).collect();
    let groups = turns.into_iter().map(|turn| {
        let group: Vec<_> = turn.into_iter().filter_map(|at| Some((at, trades[at].take()?))).collect();
        async move {
            let mut created = Vec::with_capacity(group.len());
            for (at, trade) in group {
                let accepted = match trade {
                    Ok(new) => create_one(app, caller.clone(), new).await,
                    Err(problem) => Err(problem),
                };
                created.push((at, accepted));
            }
            created
        }
    });
    let groups: Vec<_> = groups.collect();
    let mut created: Vec<_> = join_all(groups).await.into_iter().flatten().collect();
    created.sort_by_key(|(at, _)| *at);
    created.into_iter().map(|(_, accepted)| accepted).collect()
}

/// Creates a trade in a task of its own, so that a panic fails only this trade.
async fn create_one(app: &Shared, caller: app::caller::Caller, new: NewTrade) -> Result<Accepted, Problem> {
    Ok(app.mutate(|app| async move { create(&app.ctx, &caller, new).await }).await?)
}
