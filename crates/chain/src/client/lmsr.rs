//! Probabilities for display. The hub computes all payments: never use these values for money.
#![expect(clippy::float_arithmetic, reason = "a probability for the eye; no amount is computed from it")]

use alloy_primitives::U256;

/// Returns the probability of an outcome, `exp((q_i - C) / b)`, between 0 and 1. The result is
/// within about 1e-12 of the contract's.
///
/// `cost_wad` is the cost `C`, `quantity_wad` the outcome's quantity `q_i` and
/// `liquidity_usdc_atomic` the liquidity `b`.
pub fn probability(cost_wad: U256, quantity_wad: U256, liquidity_usdc_atomic: u64) -> f64 {
    // Subtract before converting to `f64`: both values may be large and close to each other.
    let below_wad = f64::from(cost_wad.saturating_sub(quantity_wad));
    let liquidity_wad = f64::from(U256::from(liquidity_usdc_atomic)) * 1e12;
    if liquidity_wad > 0.0 { (-below_wad / liquidity_wad).exp() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_equal_outcomes_are_at_one_half() {
        // C = b ln 2 with b = 100 USDC.
        let cost = U256::from(69_314_718_055_994_530_942_u128);
        assert!((probability(cost, U256::ZERO, 100_000_000) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_probability_stays_between_zero_and_one() {
        assert_eq!(probability(U256::from(1), U256::from(2), 100), 1.0);
        assert_eq!(probability(U256::MAX, U256::ZERO, 1), 0.0);
        assert_eq!(probability(U256::from(1), U256::ZERO, 0), 0.0);
    }
}
