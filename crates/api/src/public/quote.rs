//! Quotes: the result of a trade at the current prices, in whole USDC.

use alloy_primitives::U256;
use app::markets::Quote;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use domain::ids::MarketId;
use domain::market::QUOTE_LIFETIME_MS;
use domain::money::MAX_TRADE;
use domain::trade::{Side, TradeWarning};
use domain::{Timestamp, Usdc, Wad};
use http_kit::{Parameters, PathId, Problem, Query, RawQuery, Shared, number};
use presentation::numbers;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Meta;
use crate::openapi::formats::DecimalAmount;

/// Caches must not serve a quote after it expired. Unlike other public responses, it therefore has
/// no `stale-while-revalidate`.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=5");

/// The parameters `outcomeIndex`, `action` and `amount`.
#[derive(Debug)]
pub struct QuoteQuery {
    outcome_index: i64,
    side: Side,
    usdc: Usdc,
    /// The amount exactly as sent, to echo it.
    amount: String,
}

impl Parameters for QuoteQuery {
    const NAMES: &'static [&'static str] = &["outcomeIndex", "action", "amount"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        const AMOUNT: &str =
            "must be an amount of USDC above zero and at most 10000000, with up to six decimals";
        let outcome_index = asked.required("outcomeIndex", "must be an integer, 0 for the first", number);
        let side = asked.required("action", "must be one of buy, sell", |text| text.parse().ok());
        let usdc = asked.required("amount", AMOUNT, |text| {
            text.parse().ok().filter(|usdc| *usdc > Usdc::ZERO && *usdc <= MAX_TRADE)
        });
        let amount = asked.text("amount");
        Some(Self { outcome_index: outcome_index?, side: side?, usdc: usdc?, amount: amount? })
    }
}

/// One quote.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuoteAnswer)]
pub struct QuoteAnswer {
    quote: QuoteRecord,
}

/// A quote. Amounts are decimal strings of whole USDC and whole tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quote)]
#[serde(rename_all = "camelCase")]
struct QuoteRecord {
    market_id: MarketId,
    outcome_index: u8,
    action: Side,
    /// The requested amount of USDC to spend on a buy or to receive from a sale, fee included.
    #[schema(value_type = DecimalAmount)]
    amount: String,
    /// Tokens received by a buy or given by a sale.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,18})?$")]
    tokens: String,
    #[schema(value_type = DecimalAmount)]
    fee: String,
    /// USDC per token, fee included.
    #[serde(skip_serializing_if = "Option::is_none")]
    effective_price: Option<f64>,
    price_before: f64,
    price_after: f64,
    /// The change of the price relative to the price before.
    #[serde(skip_serializing_if = "Option::is_none")]
    price_impact: Option<f64>,
    /// What to know before the trade, which would be accepted all the same.
    warnings: Vec<TradeWarning>,
    expires_at: Timestamp,
}

/// `GET /api/markets/{id}/quote`: asked of the contracts on each call.
#[utoipa::path(
    get, path = "/api/markets/{id}/quote", operation_id = "getPublicQuote", tag = "Markets", summary = "Quote a trade",
    description = "The result of a trade now, computed by the contracts on each call. Only open markets can be quoted.",
    params(
        ("id" = MarketId, Path, description = "The market's id."),
        ("outcomeIndex" = i64, Query, minimum = 0, description = "The index of the outcome. The first index is 0.", example = 0),
        ("action" = Side, Query, description = "Buy or sell.", example = "buy"),
        ("amount" = DecimalAmount, Query, example = "25.00", description = "USDC to spend on a buy or to \
            receive from a sale, fee included: above 0 and at most 10000000."),
    ),
    responses((status = 200, description = "The quote.", body = QuoteAnswer)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND", "MARKET_NOT_TRADEABLE", "LIQUIDITY_INSUFFICIENT"]))),
)]
pub async fn quote(
    State(app): State<Shared>,
    PathId(id): PathId,
    Query(query): Query<QuoteQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let QuoteQuery { outcome_index, side, usdc, amount } = query;
    let quote = app::markets::quote_usdc(&app.ctx, &id, outcome_index, side, usdc).await?;
    let mut response =
        meta.answer(&QuoteAnswer { quote: QuoteRecord::new(&quote, amount, app.ctx.now()) })?;
    response.headers_mut().insert(CACHE_CONTROL, CACHED);
    Ok(response)
}

impl QuoteRecord {
    fn new(quote: &Quote, amount: String, now: Timestamp) -> Self {
        let Quote { market, outcome_index, action, fill, .. } = quote;
        let price =
            |cost: U256, quantity: U256| numbers::probability(Wad(quantity), Wad(cost), market.liquidity);
        let price_before = price(fill.cost_before_wad, fill.quantity_before_wad);
        let price_after = price(fill.cost_after_wad, fill.quantity_after_wad);
        let (usdc, tokens) = (Usdc::from_atomic(fill.usdc_atomic), Wad(fill.tokens_wad));
        Self {
            market_id: market.id,
            outcome_index: *outcome_index,
            action: action.side,
            amount,
            tokens: numbers::decimal(&tokens.0, 18),
            fee: numbers::decimal(&fill.fee_atomic, 6),
            effective_price: numbers::per_token(usdc, tokens),
            price_before,
            price_after,
            price_impact: numbers::change(price_before, price_after),
            warnings: quote.warnings(),
            expires_at: now.plus_ms(QUOTE_LIFETIME_MS),
        }
    }
}
