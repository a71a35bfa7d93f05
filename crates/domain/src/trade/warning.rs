//! Warnings about trades that are accepted.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Side;
use crate::{Usdc, Wad};

/// Something to know before a trade, which is accepted all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "code": "cannot_gain",
    "message": "This trade cannot gain: it costs 1.01 USDC, and its tokens pay at most 1.000001 USDC."
}))]
pub struct TradeWarning {
    /// The kind. `cannot_gain`: the tokens of a buy pay no more than they cost.
    #[schema(example = "cannot_gain")]
    pub code: String,
    /// An explanation for people, with the figures.
    pub message: String,
}

impl TradeWarning {
    /// Returns the warnings about a trade that moves these amounts.
    pub fn list(side: Side, usdc: Usdc, tokens: Wad) -> Vec<Self> {
        let most = tokens.worth_floor(Wad::ONE);
        if side == Side::Sell || most > usdc {
            return Vec::new();
        }
        let message = format!(
            "This trade cannot gain: it costs {} USDC, and its tokens pay at most {} USDC.",
            usdc.to_decimal(),
            most.to_decimal()
        );
        vec![Self { code: "cannot_gain".to_owned(), message }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buy_above_its_highest_payout_has_a_warning_with_the_figures() {
        let usdc = Usdc::from_whole(10);
        let of = |side, atomic| TradeWarning::list(side, usdc, Wad::from_amount(Usdc::from_atomic(atomic)));
        let warned = of(Side::Buy, 9_900_009);
        assert_eq!(
            warned[0].message,
            "This trade cannot gain: it costs 10 USDC, and its tokens pay at most 9.900009 USDC."
        );
        assert_eq!(of(Side::Buy, 10_000_000).len(), 1);
        assert!(of(Side::Buy, 10_000_001).is_empty());
        assert!(of(Side::Sell, 9_900_009).is_empty());
    }
}
