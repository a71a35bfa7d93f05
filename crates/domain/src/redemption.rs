//! Redemptions: the claim of what a settled market pays for a position.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::money::{Usdc, Wad};

/// Where a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Accepted; nothing sent yet.
    Pending,
    /// In a signed transaction, or in one that did not carry it and is to be followed by another.
    Executing,
    /// Paid, and final on chain.
    Completed,
    /// Found to pay nothing. It may be made again.
    Failed,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Executing, Self::Completed, Self::Failed];

    /// The word of the API and of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// Whether a claim may move from this status to `next`. The chain decides, so an open claim may be completed before
    /// this service has sent anything; a failed claim, and one whose refund was topped up, may be made again.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Pending, Self::Executing | Self::Completed | Self::Failed)
                | (Self::Executing, Self::Completed | Self::Failed)
                | (Self::Completed | Self::Failed, Self::Pending)
        )
    }

    /// Whether nothing more is done for the claim by itself.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no status of a redemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a status of a redemption")]
pub struct ParseStatusError;

impl FromStr for Status {
    type Err = ParseStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ParseStatusError)
    }
}

/// What a settled market pays for one of its outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payout {
    /// This much of a USDC for each token, WAD. A result may pay several outcomes a part each.
    PerToken(Wad),
    /// What the position cost, or the part of it that the market can refund.
    Refund,
}

/// Why a position cannot be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotClaimable {
    /// The market has no result, or none that is final.
    MarketOpen,
    /// The result pays nothing for this outcome.
    LosingOutcome,
    /// Nothing is held that is worth anything, or it was paid already.
    NoTokens,
}

impl NotClaimable {
    /// The word of `extensions.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MarketOpen => "market_open",
            Self::LosingOutcome => "losing_outcome",
            Self::NoTokens => "no_tokens",
        }
    }

    /// A sentence for people.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::MarketOpen => "The market has no final result yet.",
            Self::LosingOutcome => "The market's result pays nothing for this outcome.",
            Self::NoTokens => "The account holds nothing of this outcome that is still to be paid.",
        }
    }
}

/// What a claim is good for. `payout` is that of a market whose result is final, `redeemable` what the chain would pay now.
pub fn judge(payout: Option<Payout>, redeemable: Usdc) -> Result<Usdc, NotClaimable> {
    match payout {
        None => Err(NotClaimable::MarketOpen),
        Some(Payout::PerToken(Wad::ZERO)) => Err(NotClaimable::LosingOutcome),
        Some(_) if redeemable == Usdc::ZERO => Err(NotClaimable::NoTokens),
        Some(_) => Ok(redeemable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_moves_only_as_the_chain_and_its_owner_can_move_it() {
        let moves: Vec<_> = Status::ALL
            .into_iter()
            .flat_map(|from| Status::ALL.map(|to| (from, to)))
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
                "completed pending",
                "failed pending"
            ]
        );
    }

    #[test]
    fn every_word_is_read_back() {
        for status in Status::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
        }
        assert_eq!("Pending".parse::<Status>(), Err(ParseStatusError));
    }

    #[test]
    fn the_result_is_judged_before_what_is_held() {
        let (worth, part) = (Usdc::from_whole(3), Some(Payout::PerToken(Wad::from(1))));
        assert_eq!(judge(None, Usdc::ZERO), Err(NotClaimable::MarketOpen));
        assert_eq!(judge(None, worth), Err(NotClaimable::MarketOpen));
        assert_eq!(judge(Some(Payout::PerToken(Wad::ZERO)), Usdc::ZERO), Err(NotClaimable::LosingOutcome));
        assert_eq!(judge(part, Usdc::ZERO), Err(NotClaimable::NoTokens));
        assert_eq!(judge(part, worth), Ok(worth));
        assert_eq!(judge(Some(Payout::Refund), Usdc::ZERO), Err(NotClaimable::NoTokens));
        assert_eq!(judge(Some(Payout::Refund), worth), Ok(worth));
    }
}
