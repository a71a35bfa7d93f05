//! From what a caller asks for to what the chain is asked: the way to trade, the exact amount, and the bound behind it.
//! Every rounding is against the trader's bound being loosened: minimums up, maximums down.

use alloy_primitives::U256;
use chain::{Fill, Side as ChainSide};
use domain::trade::{AmountType, Side, TradeRequest};
use domain::{ErrorCode, Usdc, Wad};

use crate::AppError;

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
    /// How far the price may be worse than the quote: the request's own bound or the default; `None` if the request bounds the
    /// price only by an amount.
    pub slippage_bps: Option<u16>,
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

/// How far the price may be worse than the quote, in hundredths of a percent. A request that does not bound the price gets the
/// default, so that no trade is made at any price. Of a buy or sale of exact tokens only the slippage bounds the price.
fn slippage_bps(request: &TradeRequest, default_bps: u16) -> Option<u16> {
    let bounds_price = match side_of(request) {
        ChainSide::BuyForUsdc => request.min_tokens_out.is_some_and(|least| least > Wad::ZERO),
        ChainSide::SellForUsdc => request.max_tokens_in.is_some(),
        ChainSide::BuyTokens | ChainSide::SellTokens | ChainSide::SellAll => false,
    };
    request.max_slippage_bps.or((!bounds_price).then_some(default_bps))
}

/// The plan of a request at a quote, with the default slippage if the request does not bound the price. Rejects the request if
/// the quote itself is past a bound of it.
pub fn plan(request: &TradeRequest, quote: &Fill, default_bps: u16) -> Result<Plan, AppError> {
    let side = side_of(request);
    let slippage_bps = slippage_bps(request, default_bps);
    let quoted_usdc = Usdc::from_atomic(quote.usdc_atomic);
    let quoted_tokens = Wad(quote.tokens_wad);
    match side {
        ChainSide::BuyForUsdc => {
            let by_slippage = slippage_bps.map_or(Wad::ZERO, |bps| less_bps_ceil(quoted_tokens, bps));
            let tokens = request.min_tokens_out.unwrap_or_default().max(by_slippage);
            if quoted_tokens < tokens {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let usdc = request.amount;
            Ok(Plan { side, usdc, tokens, counted: usdc, reserved: usdc, gives: Wad::ZERO, slippage_bps })
        }
        ChainSide::BuyTokens => {
            let tokens = Wad::from_amount(request.amount);
            if let Some(least) = request.min_tokens_out.filter(|least| *least > tokens) {
                let requirement = "must be at most the tokens that are bought";
                return Err(AppError::wrong_value("/minTokensOut", requirement, &least.to_string()));
            }
            let usdc = more_bps_floor(quoted_usdc, slippage_bps.unwrap_or(default_bps));
            Ok(Plan { side, usdc, tokens, counted: usdc, reserved: usdc, gives: Wad::ZERO, slippage_bps })
        }
        ChainSide::SellForUsdc => {
            let by_slippage = slippage_bps.map(|bps| more_bps_wad_floor(quoted_tokens, bps));
            let most = [request.max_tokens_in, by_slippage].into_iter().flatten().min();
            let tokens = most.unwrap_or(Wad::from(u128::MAX));
            if quoted_tokens > tokens {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let (usdc, reserved) = (request.amount, Usdc::ZERO);
            Ok(Plan { side, usdc, tokens, counted: usdc, reserved, gives: quoted_tokens, slippage_bps })
        }
        ChainSide::SellTokens | ChainSide::SellAll => {
            if request.max_tokens_in.is_some_and(|most| quoted_tokens > most) {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let usdc = usdc_less_bps_ceil(quoted_usdc, slippage_bps.unwrap_or(default_bps));
            let tokens = if side == ChainSide::SellAll { Wad::ZERO } else { quoted_tokens };
            let (counted, reserved) = (quoted_usdc, Usdc::ZERO);
            Ok(Plan { side, usdc, tokens, counted, reserved, gives: quoted_tokens, slippage_bps })
        }
    }
}

/// The amount that a quote for a request is asked with; `None` for a sale of everything, which is quoted with the balance.
pub fn quoted_amount(request: &TradeRequest) -> Option<U256> {
    match side_of(request) {
        ChainSide::BuyForUsdc | ChainSide::SellForUsdc => Some(U256::from(request.amount.atomic())),
        ChainSide::BuyTokens | ChainSide::SellTokens => Some(Wad::from_amount(request.amount).0),
        ChainSide::SellAll => None,
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

    const DEFAULT_BPS: u16 = 200;

    fn planned(request: &TradeRequest, fill: Fill) -> Result<Plan, AppError> {
        plan(request, &fill, DEFAULT_BPS)
    }

    #[test]
    fn a_request_without_a_bound_on_the_price_gets_the_default_slippage() {
        let plain = |side, amount_type| {
            let plan =
                planned(&request(side, amount_type, Draft::default()), fill(5_000_000, 1_000)).unwrap();
            (plan.usdc.atomic(), plan.tokens, plan.slippage_bps)
        };
        assert_eq!(plain("buy", "usdc"), (10_000_000, Wad::from(980), Some(200)));
        assert_eq!(plain("sell", "usdc"), (10_000_000, Wad::from(1_020), Some(200)));
        assert_eq!(plain("buy", "tokens").0, 5_100_000);
        assert_eq!(plain("sell", "tokens"), (4_900_000, Wad::from(1_000), Some(200)));
        assert_eq!(plain("sell", "all"), (4_900_000, Wad::ZERO, Some(200)));
    }

    #[test]
    fn a_bound_of_the_request_takes_the_place_of_the_default_if_it_bounds_the_price() {
        let of = |side, amount_type, more| {
            let plan = planned(&request(side, amount_type, more), fill(5_000_000, 1_000)).unwrap();
            (plan.usdc.atomic(), plan.tokens, plan.slippage_bps)
        };
        let least = |tokens: &str| Draft { min_tokens_out: Some(tokens.into()), ..Draft::default() };
        let most = || Draft { max_tokens_in: Some("2000".into()), ..Draft::default() };
        let bps = |bps| Draft { max_slippage_bps: Some(bps), ..Draft::default() };
        assert_eq!(of("buy", "usdc", least("7")), (10_000_000, Wad::from(7), None));
        assert_eq!(of("buy", "usdc", least("0")), (10_000_000, Wad::from(980), Some(200)));
        assert_eq!(of("buy", "usdc", bps(10_000)), (10_000_000, Wad::ZERO, Some(10_000)));
        assert_eq!(of("sell", "usdc", most()), (10_000_000, Wad::from(2_000), None));
        assert_eq!(of("sell", "tokens", most()), (4_900_000, Wad::from(1_000), Some(200)));
        assert_eq!(of("sell", "tokens", bps(0)), (5_000_000, Wad::from(1_000), Some(0)));
    }

    #[test]
    fn the_stricter_of_two_bounds_holds_and_minimums_are_rounded_up() {
        let bounded =
            Draft { max_slippage_bps: Some(100), min_tokens_out: Some("5".into()), ..Draft::default() };
        let planned = planned(&request("buy", "usdc", bounded), fill(10_000_000, 101)).unwrap();
        assert_eq!(planned.tokens, Wad::from(100));
    }

    #[test]
    fn a_quote_past_the_bound_is_refused_at_once() {
        let bounded = Draft { min_tokens_out: Some("102".into()), ..Draft::default() };
        let refused = planned(&request("buy", "usdc", bounded), fill(10_000_000, 101)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SlippageExceeded);
        let bounded = Draft { max_tokens_in: Some("100".into()), ..Draft::default() };
        let refused = planned(&request("sell", "usdc", bounded), fill(10_000_000, 101)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SlippageExceeded);
    }

    #[test]
    fn a_buy_of_exact_tokens_reserves_its_upper_end_rounded_down() {
        let planned = planned(&request("buy", "tokens", Draft::default()), fill(5_000_099, 0)).unwrap();
        assert_eq!(planned.reserved, Usdc::from_atomic(5_100_100));
        assert_eq!(planned.tokens, Wad::from_amount(Usdc::from_whole(10)));
    }

    #[test]
    fn a_sale_reserves_nothing_and_counts_what_it_brings() {
        let planned = planned(&request("sell", "tokens", Draft::default()), fill(4_000_000, 10)).unwrap();
        assert_eq!((planned.reserved, planned.counted), (Usdc::ZERO, Usdc::from_whole(4)));
    }
}
