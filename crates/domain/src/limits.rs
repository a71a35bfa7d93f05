//! The service's spending caps, as exact rolling windows. The policy on chain is a second, coarser
//! limit.

use crate::Timestamp;
use crate::key::KeyLimits;
use crate::money::Usdc;
use crate::time::DAY_MS;

/// The cap that a trade exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpendRefusal {
    /// The amount exceeds the cap per trade.
    PerTrade,
    /// The amount and the buys of the last 24 hours exceed the daily cap.
    DailyVolume,
    /// The sale may give more tokens than the cap per sale allows.
    SalePerTrade,
    /// The sale and the earlier sales of the chain's day may give more tokens than the daily cap
    /// allows.
    DailySales,
}

impl SpendRefusal {
    /// Returns the value of `extensions.cap`.
    pub const fn cap(self) -> &'static str {
        match self {
            Self::PerTrade => "per_trade",
            Self::DailyVolume => "daily_volume",
            Self::SalePerTrade => "sale_per_trade",
            Self::DailySales => "daily_sales",
        }
    }
}

/// The face value of tokens that a key may sell for each USDC that it may spend.
///
/// The chain counts a sale by the face value of its tokens, 1 USDC each, because that is the most
/// that a sale at a bad price can lose. With this factor, a key that buys at prices of 0.10 or more
/// can sell everything that it bought, under the caps of the same day.
const SALE_FACTOR: u64 = 10;

/// Returns the cap on the face value of sales for a given cap on buys.
pub const fn sale_cap(buys: Usdc) -> Usdc {
    Usdc::from_atomic(buys.atomic().saturating_mul(SALE_FACTOR))
}

/// Returns the start of the window that ends at `now`. Buys at or before it do not count.
pub const fn window_start(now: Timestamp) -> Timestamp {
    now.plus_ms(-DAY_MS)
}

/// Rejects an amount above the cap per trade. An amount equal to the cap is allowed.
pub fn check_per_trade(limits: &KeyLimits, amount: Usdc) -> Result<(), SpendRefusal> {
    if amount > limits.per_trade { Err(SpendRefusal::PerTrade) } else { Ok(()) }
}

/// Rejects a buy of `amount` if the total with `spent`, the buys in the window, exceeds the daily
/// cap.
pub fn check_daily(limits: &KeyLimits, spent: Usdc, amount: Usdc) -> Result<(), SpendRefusal> {
    match spent.checked_add(amount) {
        Some(total) if total <= limits.daily => Ok(()),
        _ => Err(SpendRefusal::DailyVolume),
    }
}

/// Returns true if a trade of `amount` is held for confirmation. The threshold itself is included.
pub fn is_high_value(limits: &KeyLimits, amount: Usdc) -> bool {
    limits.high_value.is_some_and(|threshold| amount >= threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Tier;

    #[test]
    fn exactly_the_cap_passes_and_one_micro_usdc_more_is_rejected() {
        let limits = Tier::Free.default_limits();
        assert_eq!(check_per_trade(&limits, limits.per_trade), Ok(()));
        let above = Usdc::from_atomic(limits.per_trade.atomic() + 1);
        assert_eq!(check_per_trade(&limits, above), Err(SpendRefusal::PerTrade));
        assert_eq!(check_daily(&limits, Usdc::from_whole(600), Usdc::from_whole(400)), Ok(()));
        let above = Usdc::from_atomic(Usdc::from_whole(400).atomic() + 1);
        assert_eq!(check_daily(&limits, Usdc::from_whole(600), above), Err(SpendRefusal::DailyVolume));
    }

    #[test]
    fn a_trade_is_held_from_exactly_the_threshold_up() {
        let limits = Tier::Enterprise.default_limits();
        assert!(is_high_value(&limits, Usdc::from_whole(25_000)));
        assert!(!is_high_value(&limits, Usdc::from_atomic(24_999_999_999)));
        assert!(!is_high_value(&Tier::Free.default_limits(), Usdc::from_whole(500)));
    }
}
