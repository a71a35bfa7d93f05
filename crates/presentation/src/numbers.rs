//! Numbers for display. Money is always integers; these floats are for people and charts. They are
//! rounded so that equal states produce identical bytes.

use std::fmt::Display;

pub use app::markets::{displayed_price as of_outcome, displayed_probability as probability};
use domain::market::round_for_display;
use domain::{Usdc, Wad};

const DECIMALS: i32 = 6;

/// Returns a WAD price or payout as a number between 0 and 1.
pub fn price(wad: Wad) -> f64 {
    round_for_display(wad.to_f64_for_display(), DECIMALS)
}

/// Formats `units` with the given number of decimals, without trailing zeros.
pub fn decimal(units: &impl Display, decimals: usize) -> String {
    // Pad with zeros, so that there is at least one digit before the decimal point.
    let digits = format!("{units:0>width$}", width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Returns the USDC per token, or `None` if there are no tokens.
#[expect(clippy::float_arithmetic, reason = "a display value")]
pub fn per_token(usdc: Usdc, tokens: Wad) -> Option<f64> {
    let tokens = tokens.to_f64_for_display();
    (tokens > 0.0).then(|| round_for_display(usdc.to_f64_for_display() / tokens, DECIMALS))
}

/// Returns the change from `before` to `after` as a fraction of `before`, or `None` if `before` is
/// zero.
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
    fn units_are_formatted_without_trailing_zeros() {
        let cases = [
            (0u64, "0"),
            (1, "0.000001"),
            (25_000_000, "25"),
            (25_500_000, "25.5"),
            (1_234_567_890, "1234.56789"),
        ];
        for (units, text) in cases {
            assert_eq!(decimal(&units, 6), text);
        }
        assert_eq!(decimal(&Wad::ONE.0, 18), "1");
    }

    #[test]
    fn a_change_is_relative_to_the_earlier_value() {
        assert_eq!(change(0.5, 0.55), Some(0.1));
        assert_eq!(change(0.0, 0.5), None);
    }
}
