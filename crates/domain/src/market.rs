//! Market statuses, filters, and probabilities for display.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::U256;
use serde::Serialize;

use crate::{Usdc, Wad};

/// The status of a market in both APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MarketStatus {
    /// Tradeable.
    Open,
    /// Trading is suspended, or closed until the market is resolved.
    Frozen,
    /// The result is final and winners can be paid.
    Resolved,
    /// Cancelled; holders are refunded.
    Cancelled,
}

impl MarketStatus {
    pub const ALL: [Self; 4] = [Self::Open, Self::Frozen, Self::Resolved, Self::Cancelled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Frozen => "FROZEN",
            Self::Resolved => "RESOLVED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Returns true if a market may move from this status to `next`. `Resolved` and `Cancelled` are
    /// terminal.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Open, Self::Frozen | Self::Resolved | Self::Cancelled)
                | (Self::Frozen, Self::Open | Self::Resolved | Self::Cancelled)
        )
    }

    /// Returns the statuses for a filter value of either API; `None` for an unknown value.
    pub fn from_filter_word(word: &str) -> Option<&'static [Self]> {
        Some(match word {
            "OPEN" | "active" => &[Self::Open],
            "FROZEN" | "paused" => &[Self::Frozen],
            "RESOLVED" | "resolved" => &[Self::Resolved],
            "CANCELLED" | "cancelled" | "refunded" => &[Self::Cancelled],
            "all" => &[Self::Open, Self::Resolved],
            _ => return None,
        })
    }
}

impl fmt::Display for MarketStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a market status")]
pub struct ParseMarketStatusError;

impl FromStr for MarketStatus {
    type Err = ParseMarketStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ParseMarketStatusError)
    }
}

/// Lifetime of a quote in milliseconds.
pub const QUOTE_LIFETIME_MS: i64 = 10_000;

/// Returns the probability `exp((q - C) / b)` of an outcome, for display.
///
/// `quantity` and `cost` are WAD as floats, `liquidity` is `b` in whole USDC. Never use this for
/// money: the contracts compute all trade prices.
#[expect(clippy::float_arithmetic, reason = "a display value")]
pub fn probability_for_display(quantity: f64, cost: f64, liquidity: f64) -> f64 {
    if liquidity <= 0.0 {
        return 0.0;
    }
    // Rounding to floats can move the result slightly above 1.
    ((quantity - cost) / liquidity).exp().clamp(0.0, 1.0)
}

/// Rounds a display value to `decimals` decimals, so that equal states print equal bytes.
#[expect(clippy::float_arithmetic, reason = "a display value")]
pub fn round_for_display(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

/// Returns the probability of an outcome in millionths: the displayed six decimals as a sortable
/// integer.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a display value between 0 and 1"
)]
pub fn probability_ppm(quantity: Wad, cost: Wad, liquidity: Usdc) -> u32 {
    let (quantity, cost) = (quantity.to_f64_for_display(), cost.to_f64_for_display());
    let shown = probability_for_display(quantity, cost, liquidity.to_f64_for_display());
    (round_for_display(shown, 6) * 1e6).round() as u32
}

/// Returns a payout in millionths, rounded down. It ranks a settled market among the probabilities
/// of open ones.
pub fn payout_ppm(payout: Wad) -> u32 {
    const WAD_A_MILLIONTH: u64 = 1_000_000_000_000;
    u32::try_from(payout.0 / U256::from(WAD_A_MILLIONTH)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_millionths_equal_the_displayed_probability() {
        let wad = |whole| Wad::from_amount(Usdc::from_whole(whole));
        assert_eq!(probability_ppm(wad(50), wad(50), Usdc::from_whole(100)), 1_000_000);
        assert_eq!(probability_ppm(wad(0), wad(100), Usdc::from_whole(100)), 367_879);
        assert_eq!(probability_ppm(wad(0), wad(100), Usdc::ZERO), 0);
    }

    #[test]
    fn a_payout_is_rounded_down_to_whole_millionths() {
        let payout = |share: &str| Wad::from_share(share).map(payout_ppm);
        assert_eq!(payout("1"), Ok(1_000_000));
        assert_eq!(payout("0.333333999999999999"), Ok(333_333));
        assert_eq!(payout("0"), Ok(0));
    }

    #[test]
    fn only_open_and_frozen_markets_change_status() {
        let moves: Vec<_> = MarketStatus::ALL
            .into_iter()
            .flat_map(|from| MarketStatus::ALL.map(|to| (from, to)))
            .filter(|(from, to)| from.may_become(*to))
            .map(|(from, to)| format!("{from} {to}"))
            .collect();
        assert_eq!(
            moves,
            [
                "OPEN FROZEN",
                "OPEN RESOLVED",
                "OPEN CANCELLED",
                "FROZEN OPEN",
                "FROZEN RESOLVED",
                "FROZEN CANCELLED"
            ]
        );
    }

    #[test]
    fn both_apis_name_the_same_statuses() {
        assert_eq!(MarketStatus::from_filter_word("paused"), MarketStatus::from_filter_word("FROZEN"));
        assert_eq!(MarketStatus::from_filter_word("open"), None);
    }

    #[test]
    fn two_equal_outcomes_have_a_price_of_one_half() {
        let cost = 100.0 * std::f64::consts::LN_2;
        assert_eq!(round_for_display(probability_for_display(0.0, cost, 100.0), 9), 0.5);
    }
}
