//! Quotes: the result of a trade now, or after a past block.

use alloy_primitives::U256;
use app::AppError;
use app::markets::{Quote, QuoteRequest};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, VARY};
use axum::response::IntoResponse;
use domain::ids::MarketId;
use domain::market::QUOTE_LIFETIME_MS;
use domain::money::MAX_TRADE;
use domain::trade::{Side, TradeWarning};
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use http_kit::{
    Caller, MarketsQuote, Meta, OutcomeIndex, Parameters, PathId, Problem, Query, RawQuery, Shared,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::market_record::AsOf;
use super::numbers;
use crate::openapi::answers::answers;

/// Number of digits of 2^256. Longer numbers cannot be an amount, so they are rejected before they
/// are parsed.
const MAX_DIGITS: usize = 78;

answers! {
    QuoteAnswer = single("quote", QuoteRecord);
}

/// The parameters `outcomeIndex`, `action` (`buy` or `sell`), `amount` (atomic USDC for a buy, WAD
/// tokens for a sale) and optionally `block`, the block after which to quote.
#[derive(Debug)]
pub struct QuoteQuery {
    outcome_index: i64,
    side: Side,
    /// Decimal digits, not all zeros.
    amount: String,
    block: Option<u64>,
}

impl Parameters for QuoteQuery {
    const NAMES: &'static [&'static str] = &["outcomeIndex", "action", "amount", "block"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let outcome_index =
            given.required("outcomeIndex", "must be an integer, 0 for the first", |text| text.parse().ok());
        let side = given.required("action", "must be buy or sell", |text| text.parse().ok());
        let amount = given.required("amount", "must be an integer above zero in atomic units", digits);
        let block = given.with("block", "must be the number of a block", block_number);
        let OutcomeIndex(outcome_index) = outcome_index?;
        Some(Self { outcome_index, side: side?, amount: amount?, block })
    }
}

fn digits(text: &str) -> Option<String> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && text.bytes().any(|b| b != b'0');
    digits.then(|| text.trim_start_matches('0').to_owned())
}

/// Parses a block number. Unlike `u64::from_str`, it rejects a plus sign.
fn block_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

impl QuoteQuery {
    /// Returns the action to quote.
    ///
    /// # Errors
    ///
    /// `AMOUNT_TOO_LARGE` if the amount is above the maximum of a trade: 10,000,000 USDC, or 128
    /// bits of tokens.
    fn action(&self) -> Result<QuoteRequest, AppError> {
        let too_large = || AppError::new(ErrorCode::AmountTooLarge);
        if self.amount.len() > MAX_DIGITS {
            return Err(too_large());
        }
        // 78 digits can still exceed 256 bits.
        let amount = U256::from_str_radix(&self.amount, 10).map_err(|_| too_large())?;
        let most = match self.side {
            Side::Buy => U256::from(MAX_TRADE.atomic()),
            Side::Sell => U256::from(u128::MAX),
        };
        if amount > most { Err(too_large()) } else { Ok(QuoteRequest { side: self.side, amount }) }
    }
}

/// A quote. Amounts are decimal strings in the units that `units` names. Prices are in USDC per
/// token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quote)]
#[serde(rename_all = "camelCase")]
pub struct QuoteRecord {
    market_id: MarketId,
    outcome_index: u8,
    action: Side,
    /// The requested amount, without leading zeros.
    amount: String,
    /// Outcome tokens received by a buy or given by a sale.
    tokens_out: Wad,
    /// USDC to pay. Only on a buy.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usdc_in: Option<Usdc>,
    /// USDC to receive. Only on a sale.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usdc_out: Option<Usdc>,
    fee: Usdc,
    /// USDC per token, fee included.
    effective_price: Option<f64>,
    price_before: f64,
    price_after: f64,
    /// The change of the price relative to the price before.
    price_impact: Option<f64>,
    /// What to know before the trade, which would be accepted all the same.
    warnings: Vec<TradeWarning>,
    pool: Pool,
    pool_after: Pool,
    units: Units,
    expires_at: Timestamp,
    as_of: AsOf,
}

/// The market maker's state at a block.
#[derive(Debug, Serialize, ToSchema)]
struct Pool {
    /// The value of the cost function.
    cost: Wad,
    /// Tokens of each outcome that the market maker has sold.
    quantities: Vec<Wad>,
    /// The outcomes' probabilities, rounded for display.
    probabilities: Vec<f64>,
    liquidity: Usdc,
    block: u64,
}

/// The units of the amounts.
#[derive(Debug, Serialize, ToSchema)]
struct Units {
    /// `atomic-6`: millionths of a USDC.
    usdc: &'static str,
    /// `wad-18`: 18 decimals.
    token: &'static str,
}

/// `GET /v1/markets/{id}/quote`: computed by the contracts on each call. The market must be open
/// or, with `block`, must have been open after that block.
#[utoipa::path(
    get, path = "/v1/markets/{id}/quote", operation_id = "getQuote", tag = "Markets", summary = "Quote a trade",
    description = "The result of a trade now, computed by the contracts on each call. An execution in the \
        same state moves exactly these amounts. Only markets that are open, or were open at the given \
        block, can be quoted.",
    params(
        ("id" = MarketId, Path, description = "The market's id."),
        ("outcomeIndex" = i64, Query, minimum = 0, description = "The index of the outcome. The first index is 0.", example = 0),
        ("action" = Side, Query, description = "Buy or sell.", example = "buy"),
        ("amount" = String, Query, pattern = "^[0-9]+$", max_length = 78, example = "25000000",
            description = "An integer above 0 in atomic units: millionths of a USDC to spend on a buy, or \
                outcome tokens with 18 decimals to sell."),
        ("block" = Option<u64>, Query, description = "The number of the block after which to quote. The \
            market must have been open then. Default: the latest state."),
    ),
    responses((status = 200, description = "The quote. It may be cached for 10 seconds.", body = QuoteAnswer,
        headers(("Vary" = String, description = "X-API-Key: a quote is only cached for one key.")))),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND", "MARKET_NOT_TRADEABLE", "CHAIN_NOT_SUPPORTED",
        "OUTCOME_INDEX_INVALID", "AMOUNT_TOO_LARGE", "AMOUNT_TOO_SMALL", "LIQUIDITY_INSUFFICIENT", "INSUFFICIENT_BALANCE"]))),
)]
pub async fn quote(
    State(app): State<Shared>,
    _caller: Caller<MarketsQuote>,
    PathId(id): PathId,
    Query(query): Query<QuoteQuery>,
    meta: Meta,
) -> Result<impl IntoResponse, Problem> {
    let quote = app::markets::quote(&app.ctx, &id, query.outcome_index, query.action()?, query.block).await?;
    let now = app.ctx.now();
    // The lifetime equals that of the quote, and caches must separate keys.
    let headers = [(CACHE_CONTROL, "public, max-age=10"), (VARY, "X-API-Key")];
    Ok((headers, meta.single("quote", QuoteRecord::new(&quote, now))))
}

impl QuoteRecord {
    fn new(quote: &Quote, now: Timestamp) -> Self {
        let Quote { market, outcomes, outcome_index, action, fill, block } = quote;
        let at = usize::from(*outcome_index);
        let pool = |cost: U256, quantity: U256| {
            let mut quantities: Vec<Wad> = outcomes.iter().map(|outcome| outcome.quantity).collect();
            // A trade only changes the quantity of its own outcome.
            if let Some(traded) = quantities.get_mut(at) {
                *traded = Wad(quantity);
            }
            let probability = |quantity: &Wad| numbers::probability(*quantity, Wad(cost), market.liquidity);
            let probabilities = quantities.iter().map(probability).collect();
            Pool {
                cost: Wad(cost),
                quantities,
                probabilities,
                liquidity: market.liquidity,
                block: block.number,
            }
        };
        let before = pool(fill.cost_before_wad, fill.quantity_before_wad);
        let after = pool(fill.cost_after_wad, fill.quantity_after_wad);
        // The contracts accepted the index, so the defaults are never used.
        let price_before = before.probabilities.get(at).copied().unwrap_or_default();
        let price_after = after.probabilities.get(at).copied().unwrap_or_default();
        let (usdc, tokens) = (Usdc::from_atomic(fill.usdc_atomic), Wad(fill.tokens_wad));
        Self {
            market_id: market.id,
            outcome_index: *outcome_index,
            action: action.side,
            amount: action.amount.to_string(),
            tokens_out: tokens,
            usdc_in: (action.side == Side::Buy).then_some(usdc),
            usdc_out: (action.side == Side::Sell).then_some(usdc),
            fee: Usdc::from_atomic(fill.fee_atomic),
            effective_price: numbers::per_token(usdc, tokens),
            price_before,
            price_after,
            price_impact: numbers::change(price_before, price_after),
            warnings: quote.warnings(),
            pool: before,
            pool_after: after,
            units: Units { usdc: "atomic-6", token: "wad-18" },
            expires_at: now.plus_ms(QUOTE_LIFETIME_MS),
            as_of: AsOf { block: block.number, at: Timestamp::from_s(block.timestamp_s) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::market_record::testing;
    use super::*;
    use alloy_primitives::B256;
    use chain::{Block, Fill};

    fn action(side: Side, amount: &str) -> Result<U256, ErrorCode> {
        let query = QuoteQuery { outcome_index: 0, side, amount: amount.into(), block: None };
        query.action().map(|action| action.amount).map_err(|error| error.code)
    }

    #[test]
    fn amounts_are_digits_above_zero() {
        assert_eq!(digits("25000000").as_deref(), Some("25000000"));
        assert_eq!(digits("007").as_deref(), Some("7"));
        for text in ["0", "000", "-1", "+1", "1.5", "1e3", "0x1"] {
            assert_eq!(digits(text), None, "{text}");
        }
    }

    #[test]
    fn buys_above_ten_million_and_amounts_beyond_the_token_range_are_too_large() {
        assert_eq!(action(Side::Buy, "10000000000000"), Ok(U256::from(10_000_000_000_000u64)));
        assert_eq!(action(Side::Buy, "10000000000001"), Err(ErrorCode::AmountTooLarge));
        assert!(action(Side::Sell, "10000000000001").is_ok());
        for digits in [39, 78, 79, 5_000] {
            assert_eq!(action(Side::Sell, &"9".repeat(digits)), Err(ErrorCode::AmountTooLarge), "{digits}");
        }
    }

    #[test]
    fn a_quote_has_the_documented_members() {
        let (market, outcomes) = testing::market();
        let quote = Quote {
            outcome_index: 0,
            action: QuoteRequest { side: Side::Buy, amount: U256::from(10_000_000u64) },
            fill: Fill {
                usdc_atomic: 10_000_000,
                tokens_wad: U256::from(19_000_000_000_000_000_000u128),
                fee_atomic: 100_000,
                cost_before_wad: market.cost.0,
                cost_after_wad: market.cost.0 + U256::from(9_900_000_000_000_000_000u128),
                quantity_before_wad: U256::ZERO,
                quantity_after_wad: U256::from(19_000_000_000_000_000_000u128),
            },
            block: Block { number: 9, hash: B256::ZERO, parent_hash: B256::ZERO, timestamp_s: 4 },
            market,
            outcomes,
        };
        let record = QuoteRecord::new(&quote, Timestamp::from_ms(5_000));
        insta::assert_snapshot!(serde_json::to_string_pretty(&record).unwrap());
    }
}
