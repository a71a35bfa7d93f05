//! From what a caller asks for to what the chain is asked: the way to trade, the exact amount, and the bound behind it.
//! Every rounding is against the trader's bound being loosened: minimums up, maximums down.

use alloy_primitives::U256;
use chain::{Fill, Side as ChainSide};
use domain::trade::{AmountType, Side, TradeRequest};
use domain::{ErrorCode, Usdc, Wad};

use crate::AppError;

/// The slippage that a buy of exact tokens may have where the caller names none: such a buy needs an upper end.
const DEFAULT_TOKENS_SLIPPAGE_BPS: u16 = 100;
const BPS: u64 = 10_000;

/// What the chain is asked for, and what the caps and the balance count for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The way to trade.
    pub side: ChainSide,
    /// USDC, exact or bound.
    pub usdc: Usdc,
    /// Tokens, exact or bound.
    pub tokens: Wad,
    /// What the cap per trade and the gate count: the most USDC that may move on a buy, the USDC asked for or expected on
    /// a sale.
    pub counted: Usdc,
    /// What is set aside of balance and daily cap: buys alone.
    pub reserved: Usdc,
    /// Tokens that the account must hold: sales alone.
    pub gives: Wad,
}

/// The way to trade that a request means.
pub const fn side_of(request: &TradeRequest) -> ChainSide {
    match (request.side, request.amount_type) {
        (Side::Buy, AmountType::Tokens) => ChainSide::BuyTokens,
        (Side::Buy, _) => ChainSide::BuyForUsdc,
        (Side::Sell, AmountType::Usdc) => ChainSide::SellForUsdc,
        (Side::Sell, AmountType::Tokens) => ChainSide::SellTokens,
        (Side::Sell, AmountType::All) => ChainSide::SellAll,
    }
}

/// Whether a request can be planned without a quote: a plain buy for USDC.
pub const fn needs_quote(request: &TradeRequest) -> bool {
    let bounded = request.min_tokens_out.is_some() || request.max_slippage_bps.is_some();
    bounded || !matches!(side_of(request), ChainSide::BuyForUsdc)
}

/// The plan of a request at a quote. Refuses where the quote itself is past a bound of the request.
pub fn plan(request: &TradeRequest, quote: Option<&Fill>) -> Result<Plan, AppError> {
    let side = side_of(request);
    let quoted_usdc = Usdc::from_atomic(quote.map_or(0, |fill| fill.usdc_atomic));
    let quoted_tokens = Wad(quote.map_or(U256::ZERO, |fill| fill.tokens_wad));
    match side {
        ChainSide::BuyForUsdc => {
            let by_slippage =
                request.max_slippage_bps.map_or(Wad::ZERO, |bps| less_bps_ceil(quoted_tokens, bps));
            let tokens = request.min_tokens_out.unwrap_or_default().max(by_slippage);
            if quote.is_some() && quoted_tokens < tokens {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let usdc = request.amount;
            Ok(Plan { side, usdc, tokens, counted: usdc, reserved: usdc, gives: Wad::ZERO })
        }
        ChainSide::BuyTokens => {
            let tokens = Wad::from_amount(request.amount);
            if let Some(least) = request.min_tokens_out.filter(|least| *least > tokens) {
                let requirement = "must be at most the tokens that are bought";
                return Err(AppError::wrong_value("/minTokensOut", requirement, &least.to_string()));
            }
            let bps = request.max_slippage_bps.unwrap_or(DEFAULT_TOKENS_SLIPPAGE_BPS);
            let usdc = more_bps_floor(quoted_usdc, bps);
            Ok(Plan { side, usdc, tokens, counted: usdc, reserved: usdc, gives: Wad::ZERO })
        }
        ChainSide::SellForUsdc => {
            let by_slippage = request.max_slippage_bps.map(|bps| more_bps_wad_floor(quoted_tokens, bps));
            let most = [request.max_tokens_in, by_slippage].into_iter().flatten().min();
            let tokens = most.unwrap_or(Wad::from(u128::MAX));
            if quoted_tokens > tokens {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let usdc = request.amount;
            Ok(Plan { side, usdc, tokens, counted: usdc, reserved: Usdc::ZERO, gives: quoted_tokens })
        }
        ChainSide::SellTokens | ChainSide::SellAll => {
            if request.max_tokens_in.is_some_and(|most| quoted_tokens > most) {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let usdc =
                request.max_slippage_bps.map_or(Usdc::ZERO, |bps| usdc_less_bps_ceil(quoted_usdc, bps));
            let tokens = if side == ChainSide::SellAll { Wad::ZERO } else { quoted_tokens };
            Ok(Plan { side, usdc, tokens, counted: quoted_usdc, reserved: Usdc::ZERO, gives: quoted_tokens })
        }
    }
}

/// The amount that a quote for a request is asked with; for a sale of everything that is `balance`.
pub fn quoted_amount(request: &TradeRequest, balance: Wad) -> U256 {
    match side_of(request) {
        ChainSide::BuyForUsdc | ChainSide::SellForUsdc => U256::from(request.amount.atomic()),
        ChainSide::BuyTokens | ChainSide::SellTokens => Wad::from_amount(request.amount).0,
        ChainSide::SellAll => balance.0,
    }
}

fn less_bps_ceil(amount: Wad, bps: u16) -> Wad {
    let kept = U256::from(BPS - u64::from(bps));
    Wad((amount.0 * kept).div_ceil(U256::from(BPS)))
}

fn more_bps_wad_floor(amount: Wad, bps: u16) -> Wad {
    Wad(amount.0 * U256::from(BPS + u64::from(bps)) / U256::from(BPS))
}

fn usdc_less_bps_ceil(amount: Usdc, bps: u16) -> Usdc {
    let kept = u128::from(BPS - u64::from(bps));
    let least = (u128::from(amount.atomic()) * kept).div_ceil(u128::from(BPS));
    Usdc::from_atomic(u64::try_from(least).unwrap_or(u64::MAX))
}

fn more_bps_floor(amount: Usdc, bps: u16) -> Usdc {
    let most = u128::from(amount.atomic()) * u128::from(BPS + u64::from(bps)) / u128::from(BPS);
    Usdc::from_atomic(u64::try_from(most).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::trade::Draft;

    fn request(side: &str, amount_type: &str, more: Draft) -> TradeRequest {
        let draft = Draft {
            market_id: Some("m".into()),
            outcome_index: Some(0),
            amount: Some("10".into()),
            side: Some(side.into()),
            amount_type: Some(amount_type.into()),
            ..more
        };
        TradeRequest::new(draft).unwrap()
    }

    fn fill(usdc_atomic: u64, tokens_wad: u128) -> Fill {
        Fill {
            usdc_atomic,
            tokens_wad: U256::from(tokens_wad),
            fee_atomic: 0,
            cost_before_wad: U256::ZERO,
            cost_after_wad: U256::ZERO,
            quantity_before_wad: U256::ZERO,
            quantity_after_wad: U256::ZERO,
        }
    }

    #[test]
    fn a_plain_buy_has_no_lower_end_and_needs_no_quote() {
        let request = request("buy", "usdc", Draft::default());
        assert!(!needs_quote(&request));
        assert_eq!(plan(&request, None).unwrap().tokens, Wad::ZERO);
    }

    #[test]
    fn the_stricter_of_two_bounds_holds_and_minimums_are_rounded_up() {
        let bounded =
            Draft { max_slippage_bps: Some(100), min_tokens_out: Some("5".into()), ..Draft::default() };
        let planned = plan(&request("buy", "usdc", bounded), Some(&fill(10_000_000, 101))).unwrap();
        assert_eq!(planned.tokens, Wad::from(100));
    }

    #[test]
    fn a_quote_past_the_bound_is_refused_at_once() {
        let bounded = Draft { min_tokens_out: Some("102".into()), ..Draft::default() };
        let refused = plan(&request("buy", "usdc", bounded), Some(&fill(10_000_000, 101))).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SlippageExceeded);
        let bounded = Draft { max_tokens_in: Some("100".into()), ..Draft::default() };
        let refused = plan(&request("sell", "usdc", bounded), Some(&fill(10_000_000, 101))).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SlippageExceeded);
    }

    #[test]
    fn a_buy_of_exact_tokens_reserves_its_upper_end_rounded_down() {
        let planned = plan(&request("buy", "tokens", Draft::default()), Some(&fill(5_000_099, 0))).unwrap();
        assert_eq!(planned.reserved, Usdc::from_atomic(5_050_099));
        assert_eq!(planned.tokens, Wad::from_amount(Usdc::from_whole(10)));
    }

    #[test]
    fn a_sale_reserves_nothing_and_counts_what_it_brings() {
        let planned = plan(&request("sell", "tokens", Draft::default()), Some(&fill(4_000_000, 10))).unwrap();
        assert_eq!((planned.reserved, planned.counted), (Usdc::ZERO, Usdc::from_whole(4)));
    }
}
