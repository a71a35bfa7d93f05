//! Redemptions: claims of the payment for a position in a settled market.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::money::{Usdc, Wad};

/// The status of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RedemptionStatus {
    /// Accepted, and not in a transaction yet.
    Pending,
    /// In a signed transaction, or waiting for another one after the first did not include it.
    Executing,
    /// Paid, and final on chain.
    Completed,
    /// Found to pay nothing. The client can create the claim again.
    Failed,
}

impl RedemptionStatus {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Executing, Self::Completed, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// Returns true if a claim may move from this status to `next`. Any account can redeem a
    /// position on chain, so an open claim may complete before this service has sent a transaction.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Pending, Self::Executing | Self::Completed | Self::Failed)
                | (Self::Executing, Self::Completed | Self::Failed)
                | (Self::Failed, Self::Pending)
        )
    }
}

impl fmt::Display for RedemptionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a status of a redemption")]
pub struct ParseStatusError;

impl FromStr for RedemptionStatus {
    type Err = ParseStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ParseStatusError)
    }
}

/// The reason why a position cannot be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotClaimable {
    /// The market does not have a final result.
    MarketOpen,
    /// The result pays nothing for this outcome.
    LosingOutcome,
    /// The account holds no tokens, or they were already paid.
    NoTokens,
    /// The tokens that the account holds pay less than the smallest amount of USDC.
    TooFewTokens,
}

impl NotClaimable {
    /// Returns the value of `extensions.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MarketOpen => "market_open",
            Self::LosingOutcome => "losing_outcome",
            Self::NoTokens => "no_tokens",
            Self::TooFewTokens => "too_few_tokens",
        }
    }

    /// Returns an explanation for people.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::MarketOpen => "The market has no final result yet.",
            Self::LosingOutcome => "The market's result pays nothing for this outcome.",
            Self::NoTokens => "The account holds no tokens of this outcome that are still to be paid.",
            Self::TooFewTokens => {
                "The account's tokens of this outcome pay less than 0.000001 USDC, the smallest amount."
            }
        }
    }
}

/// Returns the payment of a claim, or the reason why there is none. `payout` is the final payout
/// per token, WAD, or `None` before the result is final. `held` are the account's tokens, and
/// `redeemable` is the amount that the chain would pay for them now.
pub fn check_claim(payout: Option<Wad>, held: Wad, redeemable: Usdc) -> Result<Usdc, NotClaimable> {
    match payout {
        None => Err(NotClaimable::MarketOpen),
        // A losing outcome pays nothing whatever the account holds, so it comes before the balance.
        Some(Wad::ZERO) => Err(NotClaimable::LosingOutcome),
        Some(_) if held == Wad::ZERO => Err(NotClaimable::NoTokens),
        Some(_) if redeemable == Usdc::ZERO => Err(NotClaimable::TooFewTokens),
        Some(_) => Ok(redeemable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_documented_claim_transitions_are_allowed() {
        let moves: Vec<_> = RedemptionStatus::ALL
            .into_iter()
            .flat_map(|from| RedemptionStatus::ALL.map(|to| (from, to)))
            .filter(|(from, to)| from.may_become(*to))
            .map(|(from, to)| format!("{from} {to}"))
            .collect();
        assert_eq!(
            moves,
            [
                "pending executing",
                "pending completed",
                "pending failed",
                "executing completed",
                "executing failed",
                "failed pending"
            ]
        );
    }

    #[test]
    fn every_status_round_trips() {
        for status in RedemptionStatus::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
        }
        assert_eq!("Pending".parse::<RedemptionStatus>(), Err(ParseStatusError));
    }

    #[test]
    fn the_result_is_checked_before_the_balance() {
        let (worth, part) = (Usdc::from_whole(3), Some(Wad::from(1)));
        let (none, held) = (Wad::ZERO, Wad::ONE);
        assert_eq!(check_claim(None, none, Usdc::ZERO), Err(NotClaimable::MarketOpen));
        assert_eq!(check_claim(None, held, worth), Err(NotClaimable::MarketOpen));
        assert_eq!(check_claim(Some(Wad::ZERO), none, Usdc::ZERO), Err(NotClaimable::LosingOutcome));
        assert_eq!(check_claim(part, none, Usdc::ZERO), Err(NotClaimable::NoTokens));
        assert_eq!(check_claim(part, held, Usdc::ZERO), Err(NotClaimable::TooFewTokens));
        assert_eq!(check_claim(part, held, worth), Ok(worth));
    }
}
