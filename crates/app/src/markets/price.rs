//! Prices of outcomes as people and streams see them.

use domain::market::{probability_for_display, round_for_display};
use domain::{Usdc, Wad};
use store::markets::{Market, Outcome};

/// Number of decimals of a displayed price.
const DECIMALS: i32 = 6;

/// Returns the probability of an outcome from the market maker's state.
pub fn displayed_probability(quantity: Wad, cost: Wad, liquidity: Usdc) -> f64 {
    let (quantity, cost) = (quantity.to_f64_for_display(), cost.to_f64_for_display());
    round_for_display(probability_for_display(quantity, cost, liquidity.to_f64_for_display()), DECIMALS)
}

/// Returns the current probability of an outcome, or its payout if the market is settled.
pub fn displayed_price(market: &Market, outcome: &Outcome) -> f64 {
    let payout = market.payouts.as_ref().and_then(|payouts| payouts.get(usize::from(outcome.index)));
    payout.map_or_else(
        || displayed_probability(outcome.quantity, market.cost, market.liquidity),
        |payout| round_for_display(payout.to_f64_for_display(), DECIMALS),
    )
}
