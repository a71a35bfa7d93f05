//! A market's life and the words that name it.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::U256;
use serde::Serialize;

use crate::{Usdc, Wad};

/// Where a market stands, as both APIs say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MarketStatus {
    /// Tradeable.
    Open,
    /// Not tradeable for the moment, or closed and awaiting its result.
    Frozen,
    /// The result stands; winners can be paid.
    Resolved,
    /// Called off; holders are refunded.
    Cancelled,
}

impl MarketStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Open, Self::Frozen, Self::Resolved, Self::Cancelled];

    /// The word of the APIs and of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Frozen => "FROZEN",
            Self::Resolved => "RESOLVED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether a market may move from this status to `next`. The last two are terminal.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Open, Self::Frozen | Self::Resolved | Self::Cancelled)
                | (Self::Frozen, Self::Open | Self::Resolved | Self::Cancelled)
        )
    }

    /// The statuses that a filter word of either API means; `None` for an unknown word.
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

/// The text is no market status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a market status")]
pub struct ParseMarketStatusError;

impl FromStr for MarketStatus {
    type Err = ParseMarketStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ParseMarketStatusError)
    }
}

/// Which markets a list of the public API is narrowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarketFilter {
    /// Open ones.
    Active,
    /// Frozen ones.
    Paused,
    /// Those with a result.
    Resolved,
    /// Those that were called off.
    Cancelled,
    /// Those that were called off and owe no holder a refund any more.
    Refunded,
    /// Open ones and those with a result.
    All,
}

impl MarketFilter {
    /// Every filter.
    pub const ALL: [Self; 6] =
        [Self::Active, Self::Paused, Self::Resolved, Self::Cancelled, Self::Refunded, Self::All];

    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Resolved => "resolved",
            Self::Cancelled => "cancelled",
            Self::Refunded => "refunded",
            Self::All => "all",
        }
    }

    /// The statuses of the markets that it lets through.
    pub const fn statuses(self) -> &'static [MarketStatus] {
        match self {
            Self::Active => &[MarketStatus::Open],
            Self::Paused => &[MarketStatus::Frozen],
            Self::Resolved => &[MarketStatus::Resolved],
            Self::Cancelled | Self::Refunded => &[MarketStatus::Cancelled],
            Self::All => &[MarketStatus::Open, MarketStatus::Resolved],
        }
    }

    /// Whether, besides, nobody may be owed a refund.
    pub const fn needs_refunds_paid(self) -> bool {
        matches!(self, Self::Refunded)
    }

    /// What the older parameter `active` says: open markets, or those with a result.
    pub const fn of_active(active: bool) -> Self {
        if active { Self::Active } else { Self::Resolved }
    }

    /// Whether markets with a result are among what it lets through, so that bounds on the time of the result apply.
    pub const fn holds_resolved(self) -> bool {
        matches!(self, Self::Resolved | Self::All)
    }
}

impl FromStr for MarketFilter {
    type Err = ParseMarketStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|filter| filter.as_str() == text).ok_or(ParseMarketStatusError)
    }
}

/// The probability of an outcome from the market's state, for display: `exp((q - C) / b)`.
///
/// `quantity` and `cost` are WAD as numbers, `liquidity` is `b` in whole USDC. Money never passes through here: prices
/// that trades are made at come from the contracts.
#[expect(clippy::float_arithmetic, reason = "a display value")]
pub fn probability_for_display(quantity: f64, cost: f64, liquidity: f64) -> f64 {
    if liquidity <= 0.0 {
        return 0.0;
    }
    ((quantity - cost) / liquidity).exp().clamp(0.0, 1.0)
}

/// A display number cut to `decimals` decimals, so that equal states print equal bytes.
#[expect(clippy::float_arithmetic, reason = "a display value")]
pub fn round_for_display(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

/// The probability of an outcome in millionths: what is shown with six decimals, as an integer that sorts.
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

/// A payout in millionths, rounded down: where a settled market stands among the probabilities of others.
pub fn payout_ppm(payout: Wad) -> u32 {
    const WAD_A_MILLIONTH: u64 = 1_000_000_000_000;
    u32::try_from(payout.0 / U256::from(WAD_A_MILLIONTH)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn millionths_sort_as_what_is_shown() {
        let wad = |whole| Wad::from_amount(Usdc::from_whole(whole));
        assert_eq!(probability_ppm(wad(50), wad(50), Usdc::from_whole(100)), 1_000_000);
        assert_eq!(probability_ppm(wad(0), wad(100), Usdc::from_whole(100)), 367_879);
        assert_eq!(probability_ppm(wad(0), wad(100), Usdc::ZERO), 0);
    }

    #[test]
    fn a_payout_is_so_many_whole_millionths() {
        let payout = |share: &str| Wad::from_share(share).map(payout_ppm);
        assert_eq!(payout("1"), Ok(1_000_000));
        assert_eq!(payout("0.333333999999999999"), Ok(333_333));
        assert_eq!(payout("0"), Ok(0));
    }

    #[test]
    fn only_open_and_frozen_markets_move() {
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
    fn both_apis_words_name_the_same_statuses() {
        assert_eq!(MarketStatus::from_filter_word("paused"), MarketStatus::from_filter_word("FROZEN"));
        assert_eq!(MarketStatus::from_filter_word("open"), None);
    }

    #[test]
    fn a_filter_word_means_statuses() {
        let meant: Vec<_> = MarketFilter::ALL
            .into_iter()
            .map(|filter| {
                let statuses: Vec<_> = filter.statuses().iter().map(|status| status.as_str()).collect();
                let paid = if filter.needs_refunds_paid() { " paid" } else { "" };
                format!("{}: {}{paid}", filter.as_str(), statuses.join(" "))
            })
            .collect();
        assert_eq!(
            meant,
            [
                "active: OPEN",
                "paused: FROZEN",
                "resolved: RESOLVED",
                "cancelled: CANCELLED",
                "refunded: CANCELLED paid",
                "all: OPEN RESOLVED"
            ]
        );
        for filter in MarketFilter::ALL {
            assert_eq!(filter.as_str().parse(), Ok(filter));
            assert_eq!(filter.holds_resolved(), filter.statuses().contains(&MarketStatus::Resolved));
        }
        for word in ["", "OPEN", "Active", "frozen", "active,paused"] {
            assert_eq!(word.parse::<MarketFilter>(), Err(ParseMarketStatusError), "{word}");
        }
        assert_eq!(
            [true, false].map(MarketFilter::of_active),
            [MarketFilter::Active, MarketFilter::Resolved]
        );
    }

    #[test]
    fn two_equal_outcomes_stand_at_a_half() {
        let cost = 100.0 * std::f64::consts::LN_2;
        assert_eq!(round_for_display(probability_for_display(0.0, cost, 100.0), 9), 0.5);
    }
}
