//! A position's ledger by the average-cost method: a fold over what the chain's events say moved.

use crate::money::{Usdc, UsdcDelta, Wad, share_ceil};

/// What one account holds of one outcome, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Tokens held, WAD.
    pub tokens: Wad,
    /// What the tokens held were bought for, fees included.
    pub cost_basis: Usdc,
    /// Profit of what was sold or redeemed.
    pub realized_pnl: UsdcDelta,
    /// Fees paid on all trades.
    pub fees_paid: Usdc,
}

/// One event of the chain that moves a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum Movement {
    /// `usdc` paid, fee included, for `tokens`.
    Bought { usdc: Usdc, tokens: Wad, fee: Usdc },
    /// `usdc` received, after the fee, for `tokens`.
    Sold { usdc: Usdc, tokens: Wad, fee: Usdc },
    /// `tokens` of a settled market paid out with `usdc`.
    Redeemed { usdc: Usdc, tokens: Wad },
    /// `tokens` came from another holder with that holder's cost.
    Received { tokens: Wad, cost_basis: Usdc },
    /// `tokens` went to another holder, their cost with them.
    Sent { tokens: Wad },
}

/// The events move more than the position holds: the ledger and the chain disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a movement takes more than the position holds")]
pub struct Overdrawn;

impl Position {
    /// The position after `movement`.
    pub fn after(self, movement: Movement) -> Result<Self, Overdrawn> {
        match movement {
            Movement::Bought { usdc, tokens, fee } => {
                let fees_paid = self.fees_paid.checked_add(fee).ok_or(Overdrawn)?;
                Ok(Self { fees_paid, ..self.with_more(tokens, usdc)? })
            }
            Movement::Received { tokens, cost_basis } => self.with_more(tokens, cost_basis),
            Movement::Sold { usdc, tokens, fee } => {
                let fees_paid = self.fees_paid.checked_add(fee).ok_or(Overdrawn)?;
                Ok(Self { fees_paid, ..self.with_less(tokens, Some(usdc))? })
            }
            Movement::Redeemed { usdc, tokens } => self.with_less(tokens, Some(usdc)),
            Movement::Sent { tokens } => self.with_less(tokens, None),
        }
    }

    /// The cost that leaves with `tokens` of this position.
    pub fn cost_of(&self, tokens: Wad) -> Usdc {
        share_ceil(self.cost_basis, tokens, self.tokens)
    }

    fn with_more(self, tokens: Wad, cost: Usdc) -> Result<Self, Overdrawn> {
        Ok(Self {
            tokens: self.tokens.checked_add(tokens).ok_or(Overdrawn)?,
            cost_basis: self.cost_basis.checked_add(cost).ok_or(Overdrawn)?,
            ..self
        })
    }

    fn with_less(self, tokens: Wad, proceeds: Option<Usdc>) -> Result<Self, Overdrawn> {
        let cost = self.cost_of(tokens);
        let realized = proceeds.map_or(UsdcDelta(0), |usdc| UsdcDelta::between(usdc, cost));
        Ok(Self {
            tokens: self.tokens.checked_sub(tokens).ok_or(Overdrawn)?,
            cost_basis: self.cost_basis.saturating_sub(cost),
            realized_pnl: UsdcDelta(self.realized_pnl.0.saturating_add(realized.0)),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(whole: u32) -> Wad {
        Wad::from_amount(Usdc::from_whole(whole))
    }

    fn bought() -> Position {
        let movement =
            Movement::Bought { usdc: Usdc::from_whole(60), tokens: tokens(100), fee: Usdc::from_whole(1) };
        Position::default().after(movement).unwrap()
    }

    #[test]
    fn selling_a_part_realises_against_the_average_cost() {
        let sold =
            Movement::Sold { usdc: Usdc::from_whole(40), tokens: tokens(50), fee: Usdc::from_whole(1) };
        let after = bought().after(sold).unwrap();
        assert_eq!(after.cost_basis, Usdc::from_whole(30));
        assert_eq!(after.realized_pnl, UsdcDelta(10_000_000));
        assert_eq!(after.fees_paid, Usdc::from_whole(2));
    }

    #[test]
    fn a_losing_redemption_realises_the_whole_cost_as_loss() {
        let after = bought().after(Movement::Redeemed { usdc: Usdc::ZERO, tokens: tokens(100) }).unwrap();
        assert_eq!((after.tokens, after.cost_basis), (Wad::ZERO, Usdc::ZERO));
        assert_eq!(after.realized_pnl, UsdcDelta(-60_000_000));
    }

    #[test]
    fn a_transfer_carries_its_cost_and_realises_nothing() {
        let cost_basis = bought().cost_of(tokens(25));
        let sender = bought().after(Movement::Sent { tokens: tokens(25) }).unwrap();
        let receiver =
            Position::default().after(Movement::Received { tokens: tokens(25), cost_basis }).unwrap();
        assert_eq!(sender.cost_basis, Usdc::from_whole(45));
        assert_eq!(receiver.cost_basis, Usdc::from_whole(15));
        assert_eq!(sender.realized_pnl, UsdcDelta(0));
    }

    #[test]
    fn more_than_is_held_cannot_leave() {
        assert_eq!(bought().after(Movement::Sent { tokens: tokens(101) }), Err(Overdrawn));
    }
}
