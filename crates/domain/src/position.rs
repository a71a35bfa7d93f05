//! The ledger of a position by the average-cost method, computed from the events of the chain.

use crate::money::{Usdc, UsdcDelta, Wad, share_ceil};

/// An account's holding of one outcome and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    pub tokens: Wad,
    /// The cost of the tokens held, fees included.
    pub cost_basis: Usdc,
    /// The profit of sales and redemptions so far.
    pub realized_pnl: UsdcDelta,
    /// The fees of all trades so far.
    pub fees_paid: Usdc,
}

/// A change of a position by an event of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movement {
    /// Bought `tokens` for `usdc`, fee included.
    Bought { usdc: Usdc, tokens: Wad, fee: Usdc },
    /// Sold `tokens` for `usdc`, after the fee.
    Sold { usdc: Usdc, tokens: Wad, fee: Usdc },
    /// Redeemed `tokens` of a settled market for `usdc`.
    Redeemed { usdc: Usdc, tokens: Wad },
    /// Received `tokens` from another holder, with that holder's cost.
    Received { tokens: Wad, cost_basis: Usdc },
    /// Sent `tokens` to another holder, with their cost.
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

    /// Reports whether the position can still pay something: at the payout of its settled market, or
    /// at most 1 USDC a token before. Nobody can claim less, so it counts as closed.
    pub fn is_open(&self, payout: Option<Wad>) -> bool {
        self.tokens.worth_floor(payout.unwrap_or(Wad::ONE)) > Usdc::ZERO
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

/// Reports whether a sale of `tokens` closes a position of `held` tokens.
///
/// Positions have 18 decimals and amounts of trades six. Clients round, so a sale that leaves or
/// lacks less than an amount can name means the whole position. For example, 2.345678 tokens of a
/// position of 2.3456781 tokens.
pub fn is_closing_sale(held: Wad, tokens: Wad) -> bool {
    held > Wad::ZERO && held.0.abs_diff(tokens.0) < Wad::MIN_AMOUNT.0
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
    fn a_partial_sale_realizes_profit_at_the_average_cost() {
        let sold =
            Movement::Sold { usdc: Usdc::from_whole(40), tokens: tokens(50), fee: Usdc::from_whole(1) };
        let after = bought().after(sold).unwrap();
        assert_eq!(after.cost_basis, Usdc::from_whole(30));
        assert_eq!(after.realized_pnl, UsdcDelta(10_000_000));
        assert_eq!(after.fees_paid, Usdc::from_whole(2));
    }

    #[test]
    fn a_losing_redemption_realizes_the_whole_cost_as_a_loss() {
        let after = bought().after(Movement::Redeemed { usdc: Usdc::ZERO, tokens: tokens(100) }).unwrap();
        assert_eq!((after.tokens, after.cost_basis), (Wad::ZERO, Usdc::ZERO));
        assert_eq!(after.realized_pnl, UsdcDelta(-60_000_000));
    }

    #[test]
    fn a_transfer_carries_its_cost_and_realizes_nothing() {
        let cost_basis = bought().cost_of(tokens(25));
        let sender = bought().after(Movement::Sent { tokens: tokens(25) }).unwrap();
        let receiver =
            Position::default().after(Movement::Received { tokens: tokens(25), cost_basis }).unwrap();
        assert_eq!(sender.cost_basis, Usdc::from_whole(45));
        assert_eq!(receiver.cost_basis, Usdc::from_whole(15));
        assert_eq!(sender.realized_pnl, UsdcDelta(0));
    }

    #[test]
    fn a_sale_rounded_to_six_decimals_closes_its_position() {
        let held = Wad::from(2_345_678_100_000_000_000);
        for tokens in [2_345_678_000_000_000_000, 2_345_678_100_000_000_000, 2_345_679_000_000_000_000] {
            assert!(is_closing_sale(held, Wad::from(tokens)), "{tokens}");
        }
        for tokens in [2_345_677_000_000_000_000, 2_345_680_000_000_000_000, 0] {
            assert!(!is_closing_sale(held, Wad::from(tokens)), "{tokens}");
        }
        assert!(is_closing_sale(Wad::from(1), Wad::MIN_AMOUNT));
        assert!(!is_closing_sale(Wad::ZERO, Wad::ZERO));
    }

    #[test]
    fn a_position_that_can_pay_nothing_is_closed() {
        let of = |tokens: u128| Position { tokens: Wad::from(tokens), ..Position::default() };
        assert!(!of(999_999_999_999).is_open(None));
        assert!(of(1_000_000_000_000).is_open(None));
        assert!(!bought().is_open(Some(Wad::ZERO)));
        let half = Some(Wad::from(500_000_000_000_000_000));
        assert!(!of(1_999_999_999_999).is_open(half));
        assert!(of(2_000_000_000_000).is_open(half));
    }

    #[test]
    fn a_position_cannot_lose_more_than_it_holds() {
        assert_eq!(bought().after(Movement::Sent { tokens: tokens(101) }), Err(Overdrawn));
    }
}
