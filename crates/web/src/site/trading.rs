//! The order ticket: its quotes, the trades that it creates, and their receipts.

use alloy_primitives::U256;
use app::markets::{Quote, QuoteRequest};
use app::portfolio::of_person;
use app::sessions::Person;
use app::trades::{Accepted, NewTrade};
use app::{AppError, people};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::ids::{MarketId, TradeId};
use domain::page::Page;
use domain::trade::{Draft, Side, State as TradeState, Status, TradeWarning};
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use http_kit::{PathId, Problem, Shared};
use presentation::market_face::Shown;
use presentation::{amounts, find_market, numbers};
use serde::{Deserialize, Serialize};
use store::StoreError;
use store::trades::{StatusHistory, Traced, Trade, TradeListFilter};

use super::acts::ActForm;
use super::confirmation::ConfirmPart;
use super::country::Country;
use super::form_body::ScriptBody;
use super::outcomes::offered;
use super::own_trade::get;
use super::session::{Member, problem_of};
use super::shell::{Reader, Section, Shell, answer, render};
use super::slippage::slippage_word;
use super::trace::{TraceLine, lines_of};

/// The body of `POST /app/quotes`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuoteBody {
    market_id: String,
    outcome_index: i64,
    side: Side,
    /// Millionths of a USDC to spend, or tokens with 18 decimals to sell.
    amount: String,
}

/// A quote.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct QuoteRecord {
    tokens_out: Wad,
    #[serde(skip_serializing_if = "Option::is_none")]
    usdc_in: Option<Usdc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usdc_out: Option<Usdc>,
    fee: Usdc,
    effective_price: f64,
    price_before: f64,
    price_after: f64,
    price_impact: f64,
    /// The payout of the bought tokens if the outcome wins.
    payout_usdc_atomic: Usdc,
    /// The loss of a buy if it does not.
    loss_usdc_atomic: Usdc,
    warnings: Vec<TradeWarning>,
}

impl QuoteRecord {
    fn new(quote: &Quote) -> Self {
        let Quote { market, action, fill, .. } = quote;
        let price =
            |quantity: U256, cost: U256| numbers::probability(Wad(quantity), Wad(cost), market.liquidity);
        let (before, after) = (
            price(fill.quantity_before_wad, fill.cost_before_wad),
            price(fill.quantity_after_wad, fill.cost_after_wad),
        );
        let (usdc, tokens) = (Usdc::from_atomic(fill.usdc_atomic), Wad(fill.tokens_wad));
        let is_buy = action.side == Side::Buy;
        Self {
            tokens_out: tokens,
            usdc_in: is_buy.then_some(usdc),
            usdc_out: (!is_buy).then_some(usdc),
            fee: Usdc::from_atomic(fill.fee_atomic),
            effective_price: numbers::per_token(usdc, tokens).unwrap_or_default(),
            price_before: before,
            price_after: after,
            price_impact: numbers::change(before, after).unwrap_or_default(),
            // A token pays one USDC.
            payout_usdc_atomic: super::market::value_at(tokens, 1_000_000),
            loss_usdc_atomic: if is_buy { usdc } else { Usdc::ZERO },
            warnings: quote.warnings(),
        }
    }
}

/// `POST /app/quotes`.
pub async fn quote(
    State(app): State<Shared>,
    Member(_): Member,
    ScriptBody(body): ScriptBody<QuoteBody>,
) -> Result<Response, Problem> {
    let too_large = |_| AppError::new(ErrorCode::AmountTooLarge);
    // 128 bits hold every balance of tokens.
    let amount: u128 = body.amount.parse().map_err(too_large)?;
    let request = QuoteRequest { side: body.side, amount: U256::from(amount) };
    let quote = app::markets::quote(&app.ctx, &body.market_id, body.outcome_index, request, None).await?;
    Ok(http_kit::json(&QuoteRecord::new(&quote)))
}

/// The body of `POST /app/trades`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TradeBody {
    market_id: String,
    outcome_index: i64,
    side: String,
    amount_type: String,
    amount: Option<String>,
    min_tokens_out: Option<String>,
    max_slippage_bps: Option<i64>,
    /// The ticket's own key: a repeated request with it returns the same trade.
    idempotency_key: String,
}

/// A trade, as the ticket follows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TradeRecord {
    id: TradeId,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

impl TradeRecord {
    fn new(trade: &Trade) -> Self {
        let failure = failure_of(trade);
        let is_completed = matches!(trade.state, TradeState::Completed(_));
        Self {
            id: trade.id,
            status: trade.state.status(),
            completed_at: trade.ended_at.filter(|_| is_completed),
            failed_at: trade.ended_at.filter(|_| !is_completed),
            error_code: failure.as_ref().map(|(code, _)| *code),
            error_message: failure.map(|(_, message)| message),
        }
    }
}

/// Returns the code and the message of a trade that failed or was rejected.
fn failure_of(trade: &Trade) -> Option<(&'static str, String)> {
    match &trade.state {
        TradeState::Failed(failure) => Some((failure.code.as_str(), failure.message.clone())),
        TradeState::Rejected(refusal) => Some((refusal.reason.as_str(), refusal.reason.message().to_owned())),
        _ => None,
    }
}

/// `POST /app/trades`.
pub async fn create(
    State(app): State<Shared>,
    Member(person): Member,
    Country(country): Country,
    ScriptBody(body): ScriptBody<TradeBody>,
) -> Result<Response, Problem> {
    let draft = Draft {
        market_id: Some(body.market_id),
        outcome_index: Some(body.outcome_index),
        amount: body.amount,
        side: Some(body.side),
        amount_type: Some(body.amount_type),
        min_tokens_out: body.min_tokens_out,
        max_slippage_bps: body.max_slippage_bps,
        client_request_id: Some(body.idempotency_key),
        ..Draft::default()
    };
    let new = NewTrade { draft, idempotency_key: None, dry_run: false, correlation_id: None };
    // In its own task, so that a browser that hangs up cannot leave a half-created trade.
    let accepted =
        app.mutate(async move |app| Ok(people::create_trade(&app.ctx, &person, country, new).await)).await?;
    match accepted.map_err(|error| problem_of(error, app.ctx.now()))? {
        Accepted::Created(trade) | Accepted::ReplayedByKey(trade) | Accepted::FoundByClientRequest(trade) => {
            Ok((StatusCode::CREATED, http_kit::json(&TradeRecord::new(&trade))).into_response())
        }
        Accepted::DryRun(_) => Err(AppError::internal("a trade of the ticket was a dry run").into()),
    }
}

/// `GET /app/trades/{id}`.
pub async fn find(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let (trade, _) = get(&app, &person, &id).await?;
    Ok(http_kit::json(&TradeRecord::new(&trade)))
}

/// `GET /app/trades/by-idempotency-key/{key}`.
pub async fn find_by_key(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(key): PathId,
) -> Result<Response, Problem> {
    let filter = TradeListFilter { client_request_id: Some(key), ..TradeListFilter::default() };
    let page = Page { limit: 1, after: None };
    let input = (person.user_id(), filter, page);
    let read: Result<Vec<(Trade, StatusHistory)>, StoreError> = app
        .ctx
        .store
        .read(input, |tx, (user_id, filter, page)| Box::pin(store::trades::list(tx, *user_id, filter, page)))
        .await;
    let (trade, _) = read?.into_iter().next().ok_or_else(Problem::not_found)?;
    Ok(http_kit::json(&TradeRecord::new(&trade)))
}

/// A step of a trade.
#[derive(Debug)]
struct StepLine {
    label: &'static str,
    is_good: bool,
    at: String,
    at_iso: String,
}

#[derive(Debug, Template)]
#[template(path = "site/trade.html")]
struct TradePage {
    shell: Shell,
    /// The trade has not ended: the page loads its next state.
    is_open: bool,
    /// The status as scripts compare it.
    status: &'static str,
    badge: (&'static str, &'static str),
    heading: String,
    market_id: String,
    question: String,
    reason: Option<String>,
    /// Only if the trade waits for its confirmation.
    confirm: Option<ConfirmPart>,
    facts: Vec<(&'static str, String)>,
    steps: Vec<StepLine>,
    trace: Vec<TraceLine>,
    tx_hash: Option<String>,
    id: String,
}

/// `GET /trades/{id}`: the receipt.
pub async fn receipt(
    State(app): State<Shared>,
    reader: Reader,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let (trade, history) = get(&app, &person, &id).await?;
    let (question, outcome) = match find_market(&app.ctx, &trade.market_id.to_string()).await? {
        Some((market, outcomes)) => {
            let label = outcomes.get(usize::from(trade.outcome_index)).map(|outcome| outcome.label.clone());
            (market.question, label.unwrap_or_default())
        }
        None => Default::default(),
    };
    let read = app.ctx.store.read(trade.id, |tx, id| Box::pin(store::trades::list_trace(tx, *id)));
    let events: Result<Vec<Traced>, StoreError> = read.await;
    let events = events?;
    let heading = heading_of(&trade, &outcome);
    let confirm = ConfirmPart::find(&app, &person, &trade, &outcome).await;
    let steps = history.iter().map(|(status, at)| StepLine {
        label: label_of(*status),
        is_good: !matches!(status, Status::Failed | Status::Rejected),
        at: amounts::minute(*at),
        at_iso: at.to_string(),
    });
    let page = TradePage {
        shell: Shell::new(&reader, Section::None, "Trade"),
        is_open: trade.ended_at.is_none(),
        status: trade.state.status().as_str(),
        badge: badge_of(trade.state.status()),
        heading,
        market_id: trade.market_id.to_string(),
        question,
        reason: failure_of(&trade).map(|(_, message)| message),
        confirm,
        facts: facts_of(&trade),
        steps: steps.collect(),
        trace: lines_of(&events),
        tx_hash: match &trade.state {
            TradeState::Completed(settlement) => Some(format!("{:#x}", settlement.tx_hash)),
            _ => None,
        },
        id: trade.id.to_string(),
    };
    Ok(answer(render(&page)?))
}

/// Returns what a trade did, or was to do, in words.
pub fn heading_of(trade: &Trade, outcome: &str) -> String {
    let verb = if trade.side == Side::Buy { ("Bought", "Buy") } else { ("Sold", "Sell") };
    match &trade.state {
        TradeState::Completed(settlement) => format!(
            "{} {} {outcome} for {}",
            verb.0,
            amounts::tokens(settlement.tokens),
            amounts::dollars(settlement.usdc)
        ),
        _ => format!("{} {outcome}", verb.1),
    }
}

fn facts_of(trade: &Trade) -> Vec<(&'static str, String)> {
    let TradeState::Completed(settlement) = &trade.state else { return Vec::new() };
    let is_buy = trade.side == Side::Buy;
    let mut facts = vec![
        (if is_buy { "Paid" } else { "Received" }, amounts::dollars(settlement.usdc)),
        (if is_buy { "Received" } else { "Given" }, format!("{} tokens", amounts::tokens(settlement.tokens))),
        ("Fee", amounts::dollars(settlement.fee)),
    ];
    facts.extend(amounts::price(settlement.usdc, settlement.tokens).map(|price| ("Average price", price)));
    facts
}

/// Returns the class and the text of a status.
pub const fn badge_of(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Completed => ("is-good", "Done"),
        Status::Failed | Status::Rejected => ("is-bad", "Not executed"),
        _ => ("is-wait", "In progress"),
    }
}

const fn label_of(status: Status) -> &'static str {
    match status {
        Status::PendingConfirmation => "Waiting for your confirmation",
        Status::Pending => "Accepted",
        Status::Validating => "Checked",
        Status::Executing => "Sent to the chain",
        Status::Completed => "Done",
        Status::Failed => "Failed",
        Status::Rejected => "Rejected",
    }
}

/// The ticket on a market's page, for a reader who may trade.
#[derive(Debug)]
pub struct TicketPart {
    /// The site can trade, or an owner signs each order.
    pub can_trade: bool,
    /// The person has paused trading.
    pub is_paused: bool,
    /// The operator has stopped trading on this site: an owner signs each order.
    pub is_stopped: bool,
    /// Dollars and cents, and the exact amount.
    pub cash: String,
    pub cash_exact: String,
    pub per_trade: String,
    pub per_trade_exact: String,
    pub slippage_bps: u16,
    pub slippage: &'static str,
    /// The operator refuses buying from the person's country.
    pub is_sell_only: bool,
    pub outcomes: Vec<TicketOutcome>,
    /// The market has more outcomes than the ticket offers.
    pub has_more: bool,
    /// The open positions of the person in this market: outcomes and tokens.
    positions: Vec<(u8, Wad)>,
    pub form: ActForm,
}

/// An outcome in the ticket.
#[derive(Debug)]
pub struct TicketOutcome {
    pub shown: Shown,
    /// The ticket starts with it.
    pub is_chosen: bool,
    /// Tokens held, with all decimals.
    pub held: String,
}

impl TicketPart {
    pub async fn read(
        app: &Shared,
        person: &Person,
        id: MarketId,
        (outcomes, chosen): (&[Shown], Option<u8>),
        reader: &Reader,
    ) -> Result<Self, Problem> {
        let owned = of_person(&app.ctx, person).await?;
        // An owner signs each order that the site must not make.
        let is_stopped = person.is_web_key_revoked();
        let per_trade = if is_stopped { Usdc::ZERO } else { person.web_key().limits().per_trade };
        let positions = owned.positions.iter().filter(|it| it.held.market_id == id && it.is_open());
        let positions: Vec<_> = positions.map(|it| (it.held.outcome_index, it.position().tokens)).collect();
        let tokens = |index: u8| positions.iter().find(|(outcome, _)| *outcome == index).map(|(_, it)| *it);
        let offered = offered(outcomes, chosen, |index| tokens(index).is_some());
        let is_offered = |index: &u8| offered.iter().any(|shown| shown.index == *index);
        let chosen = chosen.filter(is_offered).or_else(|| offered.first().map(|shown| shown.index));
        let cash = owned.cash().saturating_sub(owned.account.reserved);
        Ok(Self {
            is_paused: person.web_key().paused_at.is_some() && !is_stopped,
            is_stopped,
            can_trade: is_stopped || person.lets_site_trade(&owned.state, app.ctx.now()),
            cash: amounts::dollars(cash),
            cash_exact: cash.to_decimal(),
            per_trade: amounts::dollars(per_trade),
            per_trade_exact: per_trade.to_decimal(),
            slippage_bps: reader.slippage_bps,
            slippage: slippage_word(reader.slippage_bps),
            is_sell_only: reader.country.0.is_refused,
            has_more: offered.len() < outcomes.len(),
            outcomes: offered
                .into_iter()
                .map(|shown| TicketOutcome {
                    is_chosen: chosen == Some(shown.index),
                    held: numbers::decimal(&tokens(shown.index).unwrap_or_default().0, 18),
                    shown,
                })
                .collect(),
            positions,
            form: ActForm::new(app, owned.account.address)?,
        })
    }

    /// Returns the tokens that the person holds of an outcome, if any.
    pub fn held(&self, index: u8) -> Option<String> {
        let held = self.positions.iter().find(|(outcome, _)| *outcome == index);
        held.map(|(_, tokens)| amounts::tokens(*tokens))
    }
}
