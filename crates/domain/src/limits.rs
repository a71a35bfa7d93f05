//! Spending caps: the exact rolling rule of the service. The chain's policy is the outer fence behind it.

use crate::Timestamp;
use crate::key::KeyLimits;
use crate::money::Usdc;
use crate::time::DAY_MS;

/// Which cap a trade passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpendRefusal {
    /// The trade alone is above the cap per trade.
    PerTrade,
    /// The trade and the buys of the last 24 hours together are above the daily cap.
    DailyVolume,
}

impl SpendRefusal {
    /// The word of `extensions.cap`.
    pub const fn cap(self) -> &'static str {
        match self {
            Self::PerTrade => "per_trade",
            Self::DailyVolume => "daily_volume",
        }
    }
}

/// The start of the window that `now` ends: buys at or before it no longer count.
pub const fn window_start(now: Timestamp) -> Timestamp {
    now.plus_ms(-DAY_MS)
}

/// Refuses a trade of `amount` above the cap per trade. A cap holds what is equal to it.
pub fn check_per_trade(limits: &KeyLimits, amount: Usdc) -> Result<(), SpendRefusal> {
    if amount > limits.per_trade { Err(SpendRefusal::PerTrade) } else { Ok(()) }
}

/// Refuses a buy of `amount` on top of `spent` in the window where both together are above the daily cap.
pub fn check_daily(limits: &KeyLimits, spent: Usdc, amount: Usdc) -> Result<(), SpendRefusal> {
    match spent.checked_add(amount) {
        Some(total) if total <= limits.daily => Ok(()),
        _ => Err(SpendRefusal::DailyVolume),
    }
}

/// Whether a trade of `amount` is held for confirmation. The gate holds what is equal to it.
pub fn is_high_value(limits: &KeyLimits, amount: Usdc) -> bool {
    limits.high_value.is_some_and(|threshold| amount >= threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Tier;

    #[test]
    fn exactly_the_cap_passes_and_one_micro_usdc_more_is_refused() {
        let limits = Tier::Free.default_limits();
        assert_eq!(check_per_trade(&limits, limits.per_trade), Ok(()));
        let above = Usdc::from_atomic(limits.per_trade.atomic() + 1);
        assert_eq!(check_per_trade(&limits, above), Err(SpendRefusal::PerTrade));
        assert_eq!(check_daily(&limits, Usdc::from_whole(600), Usdc::from_whole(400)), Ok(()));
        let above = Usdc::from_atomic(Usdc::from_whole(400).atomic() + 1);
        assert_eq!(check_daily(&limits, Usdc::from_whole(600), above), Err(SpendRefusal::DailyVolume));
    }

    #[test]
    fn the_gate_holds_exactly_its_threshold_and_not_less() {
        let limits = Tier::Enterprise.default_limits();
        assert!(is_high_value(&limits, Usdc::from_whole(25_000)));
        assert!(!is_high_value(&limits, Usdc::from_atomic(24_999_999_999)));
        assert!(!is_high_value(&Tier::Free.default_limits(), Usdc::from_whole(500)));
    }
}
