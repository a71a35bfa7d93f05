//! The trending score. Its formula is public, and its inputs are published with it, so that clients
//! can verify it.

use crate::Usdc;

/// Returns `3 ln(1 + unique traders) + 2 ln(1 + trades) + ln(1 + volume in USD)` over a window, in
/// ten-thousandths.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a display value that no money follows from"
)]
pub fn score_e4(unique_traders: u64, trades: u64, volume: Usdc) -> i64 {
    let ln = |n: f64| n.ln_1p();
    let score = 3.0 * ln(unique_traders as f64) + 2.0 * ln(trades as f64) + ln(volume.to_f64_for_display());
    (score * 1e4).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_published_formula() {
        assert_eq!(score_e4(0, 0, Usdc::ZERO), 0);
        // 3 ln 2 + 2 ln 2 + ln 101 = 8.0808...
        assert_eq!(score_e4(1, 1, Usdc::from_whole(100)), 80_809);
        assert!(score_e4(2, 1, Usdc::ZERO) > score_e4(1, 2, Usdc::ZERO));
    }
}
