//! Runs the tools.

use app::AppError;
use axum::http::StatusCode;
use http_kit::{JsonBody, Problem, read_object};
use protocol::document::DocumentNode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answers::{
    ConfirmationLink, CreateKind, CreateTradeResult, MarketDetails, MarketSummary, Markets, Portfolio,
    PositionSummary, QuoteSummary, RedemptionSummary, TraceSummary, TradeSummary, Trades,
};
use super::arguments::{GetMarket, ListTrades, NoArguments, QuoteTrade, SearchMarkets, TraceTrade};
use super::call::{take_text, to_json};
use super::routes::{RouteAnswer, RouteCall};
use super::session::Session;
use super::tools::Tool;

/// Runs a tool, and returns its answer.
pub async fn run(session: &Session, tool: Tool, arguments: DocumentNode) -> Result<Value, Problem> {
    match tool {
        Tool::SearchMarkets => {
            let path = read::<SearchMarkets>(arguments)?.path();
            let answer = session.call(RouteCall::get("/v1/markets", path)).await?;
            let (markets, next_cursor) = page::<MarketSummary>(answer)?;
            write(&Markets { markets, next_cursor })
        }
        Tool::GetMarket => {
            let path = read::<GetMarket>(arguments)?.path();
            let answer = session.call(RouteCall::get("/v1/markets/{id}", path)).await?;
            write(&part::<MarketDetails>(answer.body, "market")?)
        }
        Tool::Quote => {
            let path = read::<QuoteTrade>(arguments)?.path()?;
            let answer = session.call(RouteCall::get("/v1/markets/{id}/quote", path)).await?;
            write(&part::<QuoteSummary>(answer.body, "quote")?)
        }
        Tool::Portfolio => {
            let NoArguments {} = read(arguments)?;
            portfolio(session).await
        }
        Tool::ListTrades => {
            let path = read::<ListTrades>(arguments)?.path();
            let answer = session.call(RouteCall::get("/v1/trades", path)).await?;
            let (trades, next_cursor) = page::<TradeSummary>(answer)?;
            write(&Trades { trades, next_cursor })
        }
        Tool::Trace => {
            let path = read::<TraceTrade>(arguments)?.path();
            let answer = session.call(RouteCall::get("/v1/traces/{correlationId}", path)).await?;
            write(&part::<TraceSummary>(answer.body, "trace")?)
        }
        Tool::CreateTrade => create_trade(session, arguments).await,
        Tool::Redeem => {
            let answer = session.call(RouteCall::post("/v1/redemptions", to_json(&arguments), None)).await?;
            write(&part::<RedemptionSummary>(answer.body, "redemption")?)
        }
    }
}

async fn portfolio(session: &Session) -> Result<Value, Problem> {
    let get = |path: &'static str| session.call(RouteCall::get(path, path.to_owned()));
    let account = part(get("/v1/portfolio").await?.body, "portfolio")?;
    let positions: Vec<PositionSummary> = part(get("/v1/portfolio/positions").await?.body, "data")?;
    let positions = positions.into_iter().filter(PositionSummary::is_open).collect();
    write(&Portfolio { account, positions })
}

async fn create_trade(session: &Session, mut arguments: DocumentNode) -> Result<Value, Problem> {
    let requirement =
        "a new text for each trade, such as a UUID, and the same text when the call is repeated";
    let key = take_text(&mut arguments, "idempotencyKey", requirement)
        .map_err(|error| AppError::validation(&[error]))?;
    let call = RouteCall::post("/v1/trades", to_json(&arguments), Some(key));
    let RouteAnswer { status, mut body, .. } = session.call(call).await?;
    if body.get("dryRun").is_some() {
        return write(&CreateTradeResult {
            result: CreateKind::DryRun,
            trade: None,
            dry_run: Some(part(body, "dryRun")?),
            confirmation: None,
            next: "Nothing was created. To trade, call create_trade again without dryRun.",
        });
    }
    let is_repeat = body.pointer("/_meta/idempotent") == Some(&Value::Bool(true));
    let page = body.pointer_mut("/trade/confirmationPage").map(Value::take);
    let trade: TradeSummary = part(body, "trade")?;
    let is_held = status == StatusCode::ACCEPTED;
    let confirmation: Option<ConfirmationLink> =
        page.map(serde_json::from_value).transpose().map_err(AppError::internal)?;
    let (result, next) = match (is_held, is_repeat) {
        (true, _) => (
            CreateKind::Held,
            "The trade is held because of its amount. Show confirmation.url to the owner of the account, who must \
             confirm it there before expiresAt.",
        ),
        (false, true) => (
            CreateKind::Repeated,
            "An earlier call with this idempotency key created the trade. Call list_trades for its current status.",
        ),
        (false, false) => {
            (CreateKind::Created, "Call list_trades until the status is completed, failed or rejected.")
        }
    };
    write(&CreateTradeResult { result, trade: Some(trade), dry_run: None, confirmation, next })
}

fn read<T: JsonBody>(arguments: DocumentNode) -> Result<T, Problem> {
    Ok(read_object(arguments).map_err(|errors| AppError::validation(&errors))?)
}

/// Reads a member of a route's answer.
fn part<T: DeserializeOwned>(mut body: Value, name: &str) -> Result<T, Problem> {
    let member = body.get_mut(name).map(Value::take).unwrap_or_default();
    Ok(serde_json::from_value(member).map_err(AppError::internal)?)
}

/// Reads a page of a list, and the cursor of the next one.
fn page<T: DeserializeOwned>(answer: RouteAnswer) -> Result<(Vec<T>, Option<String>), Problem> {
    let cursor = answer.body.pointer("/pagination/cursor").and_then(Value::as_str).map(str::to_owned);
    Ok((part(answer.body, "data")?, cursor))
}

fn write(answer: &impl Serialize) -> Result<Value, Problem> {
    Ok(serde_json::to_value(answer).map_err(AppError::internal)?)
}
