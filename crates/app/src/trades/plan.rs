//! Computes the on-chain side, exact amount and price bound of a trade request.
//!
//! Rounding never loosens the trader's bound: minimums are rounded up and maximums down.

use alloy_primitives::U256;
use chain::{Fill, IntentSide, Policy, tokens_of_face_value};
use domain::limits::SpendRefusal;
use domain::position::is_closing_sale;
use domain::trade::{AmountType, Side, TradeRequest};
use domain::{ErrorCode, Timestamp, Usdc, Wad};

use crate::AppError;

const BPS: u64 = 10_000;

/// The amounts that are sent to the chain and counted against caps and balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TradePlan {
    pub side: IntentSide,
    /// The exact amount or the bound, depending on `side`.
    pub usdc: Usdc,
    /// The exact amount or the bound, depending on `side`.
    pub tokens: Wad,
    /// The amount that the cap per trade and the confirmation threshold apply to. Buys: the most
    /// USDC that may move. Sales: the USDC requested or expected.
    pub counted: Usdc,
    /// The USDC to reserve from balance and daily cap. Zero for sales.
    pub reserved: Usdc,
    /// The tokens that the account must hold. Zero for buys.
    pub gives: Wad,
    /// The largest accepted difference to the quoted price: the request's own bound or the default.
    /// `None` if the request bounds the price only by an amount.
    pub slippage_bps: Option<u16>,
}

/// The tokens that a key's sale caps allow it to sell now. The caps are in USDC of face value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sellable {
    /// Limit of one sale.
    pub per_trade: Wad,
    /// Remaining limit of the current 24-hour window on chain.
    pub left: Wad,
}

impl Sellable {
    /// Returns the limits of a policy at the time `now`.
    pub fn of(policy: &Policy, now: Timestamp) -> Self {
        Self {
            per_trade: Wad(tokens_of_face_value(policy.sale_per_trade_usdc_atomic)),
            left: Wad(tokens_of_face_value(policy.sale_left_usdc_atomic(now.s()))),
        }
    }

    fn most(self) -> Wad {
        self.per_trade.min(self.left)
    }

    fn check(self, tokens: Wad) -> Result<(), SpendRefusal> {
        if tokens > self.per_trade {
            return Err(SpendRefusal::SalePerTrade);
        }
        if tokens > self.left { Err(SpendRefusal::DailySales) } else { Ok(()) }
    }
}

/// Returns the contract's side for the request's side and amount type.
pub const fn side_of(request: &TradeRequest) -> IntentSide {
    match (request.side, request.amount_type) {
        (Side::Buy, AmountType::Tokens) => IntentSide::BuyTokens,
        (Side::Buy, _) => IntentSide::BuyForUsdc,
        (Side::Sell, AmountType::Usdc) => IntentSide::SellForUsdc,
        (Side::Sell, AmountType::Tokens) => IntentSide::SellTokens,
        (Side::Sell, AmountType::All) => IntentSide::SellAll,
    }
}

/// Reports whether a sale of `tokens` is replaced by one of all `held` tokens, which differ from them
/// by less than an amount can name. It must stay within the request's bound and the key's caps.
pub fn sells_whole_position(request: &TradeRequest, tokens: Wad, held: Wad, sellable: Sellable) -> bool {
    let is_within_bound = request.max_tokens_in.is_none_or(|most| held <= most);
    is_closing_sale(held, tokens) && is_within_bound && sellable.check(held).is_ok()
}

/// Returns the request's slippage in basis points, or the default if nothing else bounds the price.
///
/// No trade may execute at an arbitrary price. For exact tokens only the slippage bounds the price,
/// so the default always applies there.
fn slippage_bps(request: &TradeRequest, default_bps: u16) -> Option<u16> {
    let bounds_price = match side_of(request) {
        IntentSide::BuyForUsdc => request.min_tokens_out.is_some_and(|least| least > Wad::ZERO),
        IntentSide::SellForUsdc => request.max_tokens_in.is_some(),
        IntentSide::BuyTokens | IntentSide::SellTokens | IntentSide::SellAll => false,
    };
    request.max_slippage_bps.or((!bounds_price).then_some(default_bps))
}

/// Computes the plan of a request at a quote.
///
/// `side` is that of the request, or [`IntentSide::SellTokens`] if the sale was widened to the whole
/// position: see [`sells_whole_position`]. Rejects the request if the quote already violates one of its bounds. The token bound of a sale
/// never exceeds `sellable`, so that the signed intent stays within the key's sale caps.
pub fn plan(
    request: &TradeRequest,
    side: IntentSide,
    quote: &Fill,
    default_bps: u16,
    sellable: Sellable,
) -> Result<TradePlan, AppError> {
    let slippage_bps = slippage_bps(request, default_bps);
    let quoted_usdc = Usdc::from_atomic(quote.usdc_atomic);
    let quoted_tokens = Wad(quote.tokens_wad);
    if !side.is_buy() {
        sellable.check(quoted_tokens)?;
    }
    match side {
        IntentSide::BuyForUsdc => {
            let by_slippage = slippage_bps.map_or(Wad::ZERO, |bps| less_bps_ceil(quoted_tokens, bps));
            let tokens = request.min_tokens_out.unwrap_or_default().max(by_slippage);
            if quoted_tokens < tokens {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let usdc = request.amount;
            Ok(TradePlan {
                side,
                usdc,
                tokens,
                counted: usdc,
                reserved: usdc,
                gives: Wad::ZERO,
                slippage_bps,
            })
        }
        IntentSide::BuyTokens => {
            let tokens = Wad::from_amount(request.amount);
            if let Some(least) = request.min_tokens_out.filter(|least| *least > tokens) {
                let requirement = "must be at most the amount of tokens to buy";
                return Err(AppError::wrong_value("/minTokensOut", requirement, &least.to_string()));
            }
            let usdc = more_bps_floor(quoted_usdc, slippage_bps.unwrap_or(default_bps));
            Ok(TradePlan {
                side,
                usdc,
                tokens,
                counted: usdc,
                reserved: usdc,
                gives: Wad::ZERO,
                slippage_bps,
            })
        }
        IntentSide::SellForUsdc => {
            let by_slippage = slippage_bps.map(|bps| more_bps_wad_floor(quoted_tokens, bps));
            let most = [request.max_tokens_in, by_slippage].into_iter().flatten().min();
            if most.is_some_and(|most| quoted_tokens > most) {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let tokens = most.map_or(sellable.most(), |most| most.min(sellable.most()));
            let (usdc, reserved) = (request.amount, Usdc::ZERO);
            Ok(TradePlan { side, usdc, tokens, counted: usdc, reserved, gives: quoted_tokens, slippage_bps })
        }
        IntentSide::SellTokens | IntentSide::SellAll => {
            if request.max_tokens_in.is_some_and(|most| quoted_tokens > most) {
                return Err(AppError::new(ErrorCode::SlippageExceeded));
            }
            let by_slippage = usdc_less_bps_ceil(quoted_usdc, slippage_bps.unwrap_or(default_bps));
            // The trader asked for this much USDC, and gets it for the whole position.
            let asks_usdc = request.amount_type == AmountType::Usdc;
            let usdc = if asks_usdc { request.amount } else { by_slippage };
            let tokens = if side == IntentSide::SellAll {
                // Buys in flight may execute before this sale, and their tokens are sold too. Twice
                // the present balance is a bound with room for them.
                let most = Wad(quoted_tokens.0.saturating_mul(U256::from(2)));
                most.min(request.max_tokens_in.unwrap_or(most)).min(sellable.most())
            } else {
                quoted_tokens
            };
            let counted = if asks_usdc { request.amount } else { quoted_usdc };
            let reserved = Usdc::ZERO;
            Ok(TradePlan { side, usdc, tokens, counted, reserved, gives: quoted_tokens, slippage_bps })
        }
    }
}

/// Returns the amount to quote. `None` for a sale of everything, which is quoted with the
/// position's size.
pub fn quoted_amount(request: &TradeRequest) -> Option<U256> {
    match side_of(request) {
        IntentSide::BuyForUsdc | IntentSide::SellForUsdc => Some(U256::from(request.amount.atomic())),
        IntentSide::BuyTokens | IntentSide::SellTokens => Some(Wad::from_amount(request.amount).0),
        IntentSide::SellAll => None,
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

    const SELLABLE: Sellable = Sellable { per_trade: Wad(U256::MAX), left: Wad(U256::MAX) };

    fn planned(request: &TradeRequest, fill: Fill) -> Result<TradePlan, AppError> {
        plan(request, side_of(request), &fill, DEFAULT_BPS, SELLABLE)
    }

    #[test]
    fn a_sale_above_a_sale_cap_is_rejected_and_never_signed() {
        let sell = |amount_type| request("sell", amount_type, Draft::default());
        let of = |amount_type, per_trade: u128, left: u128| {
            let sellable = Sellable { per_trade: Wad::from(per_trade), left: Wad::from(left) };
            let request = sell(amount_type);
            plan(&request, side_of(&request), &fill(10_000_000, 1_000), DEFAULT_BPS, sellable)
        };
        for amount_type in ["usdc", "tokens", "all"] {
            let refused = of(amount_type, 999, 5_000).unwrap_err();
            assert_eq!(refused.code, ErrorCode::SpendingLimitExceeded);
            assert_eq!(refused.extensions["cap"], "sale_per_trade");
            assert_eq!(of(amount_type, 5_000, 999).unwrap_err().extensions["cap"], "daily_sales");
            assert_eq!(of(amount_type, 1_000, 1_000).unwrap().tokens, Wad::from(1_000));
        }
        assert_eq!(of("usdc", 5_000, 5_000).unwrap().tokens, Wad::from(1_020));
        assert_eq!(of("usdc", 5_000, 1_010).unwrap().tokens, Wad::from(1_010));
        assert_eq!(of("all", 5_000, 5_000).unwrap().tokens, Wad::from(2_000));
    }

    #[test]
    fn a_sale_becomes_one_of_the_whole_position_only_within_its_bound_and_caps() {
        let (held, tokens) = (Wad::from(1_500_000_000_000_000_001), Wad::from(1_500_000_000_000_000_000));
        let most = |tokens: &str| {
            let bound = Draft { max_tokens_in: Some(tokens.into()), ..Draft::default() };
            request("sell", "tokens", bound)
        };
        let is_whole =
            |request: &TradeRequest, sellable| sells_whole_position(request, tokens, held, sellable);
        assert!(is_whole(&request("sell", "tokens", Draft::default()), SELLABLE));
        assert!(is_whole(&most("1500000000000000001"), SELLABLE));
        assert!(!is_whole(&most("1500000000000000000"), SELLABLE));
        let capped = Sellable { per_trade: tokens, left: held };
        assert!(!is_whole(&request("sell", "tokens", Draft::default()), capped));
    }

    #[test]
    fn a_request_for_usdc_gets_at_least_that_for_the_whole_position() {
        let request = request("sell", "usdc", Draft::default());
        let planned =
            plan(&request, IntentSide::SellTokens, &fill(10_000_001, 1_000), DEFAULT_BPS, SELLABLE).unwrap();
        assert_eq!((planned.usdc, planned.counted), (Usdc::from_whole(10), Usdc::from_whole(10)));
        assert_eq!((planned.tokens, planned.gives), (Wad::from(1_000), Wad::from(1_000)));
    }

    #[test]
    fn a_request_without_a_price_bound_gets_the_default_slippage() {
        let plain = |side, amount_type| {
            let plan =
                planned(&request(side, amount_type, Draft::default()), fill(5_000_000, 1_000)).unwrap();
            (plan.usdc.atomic(), plan.tokens, plan.slippage_bps)
        };
        assert_eq!(plain("buy", "usdc"), (10_000_000, Wad::from(980), Some(200)));
        assert_eq!(plain("sell", "usdc"), (10_000_000, Wad::from(1_020), Some(200)));
        assert_eq!(plain("buy", "tokens").0, 5_100_000);
        assert_eq!(plain("sell", "tokens"), (4_900_000, Wad::from(1_000), Some(200)));
        assert_eq!(plain("sell", "all"), (4_900_000, Wad::from(2_000), Some(200)));
    }

    #[test]
    fn a_price_bound_of_the_request_replaces_the_default() {
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
    fn the_stricter_of_two_bounds_applies_and_minimums_round_up() {
        let bounded =
            Draft { max_slippage_bps: Some(100), min_tokens_out: Some("5".into()), ..Draft::default() };
        let planned = planned(&request("buy", "usdc", bounded), fill(10_000_000, 101)).unwrap();
        assert_eq!(planned.tokens, Wad::from(100));
    }

    #[test]
    fn a_quote_past_the_bound_is_rejected_at_once() {
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
    fn a_sale_reserves_nothing_and_counts_its_proceeds() {
        let planned = planned(&request("sell", "tokens", Draft::default()), fill(4_000_000, 10)).unwrap();
        assert_eq!((planned.reserved, planned.counted), (Usdc::ZERO, Usdc::from_whole(4)));
    }
}
