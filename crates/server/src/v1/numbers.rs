//! Numbers for display. Money itself is integers; what stands here is for eyes and charts, rounded so that equal states
//! print equal bytes.

use domain::market::{probability_for_display, round_for_display};
use domain::{Usdc, Wad};

const DECIMALS: i32 = 6;

/// The probability of an outcome from the market maker's state.
pub fn probability(quantity: Wad, cost: Wad, liquidity: Usdc) -> f64 {
    let (quantity, cost) = (quantity.to_f64_for_display(), cost.to_f64_for_display());
    round_for_display(probability_for_display(quantity, cost, liquidity.to_f64_for_display()), DECIMALS)
}

/// A WAD price or payout.
pub fn price(wad: Wad) -> f64 {
    round_for_display(wad.to_f64_for_display(), DECIMALS)
}

/// USDC for each token; `None` where there are no tokens.
#[expect(clippy::float_arithmetic, reason = "a display value")]
pub fn per_token(usdc: Usdc, tokens: Wad) -> Option<f64> {
    let tokens = tokens.to_f64_for_display();
    (tokens > 0.0).then(|| round_for_display(usdc.to_f64_for_display() / tokens, DECIMALS))
}

/// The change from `before` to `after` as a part of `before`; `None` from zero.
#[expect(clippy::float_arithmetic, reason = "a display value")]
pub fn change(before: f64, after: f64) -> Option<f64> {
    (before > 0.0).then(|| round_for_display((after - before) / before, DECIMALS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_usdc_for_each_token() {
        assert_eq!(per_token(Usdc::from_whole(3), Wad::from_amount(Usdc::from_whole(4))), Some(0.75));
        assert_eq!(per_token(Usdc::from_whole(3), Wad::ZERO), None);
        assert_eq!(price(Wad::ONE), 1.0);
    }

    #[test]
    fn a_change_is_a_part_of_what_was_before() {
        assert_eq!(change(0.5, 0.55), Some(0.1));
        assert_eq!(change(0.0, 0.5), None);
    }
}
