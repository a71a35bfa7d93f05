//! Prices of candles, as both APIs show them.

use app::markets::MarketHistory;
use domain::candle::{self, Candle};
use domain::{Usdc, Wad};
use presentation::numbers;
use store::markets::Outcome;

/// Returns the opening, highest, lowest and closing price of a candle.
pub fn prices(candle: &Candle, liquidity: Usdc) -> [f64; 4] {
    let distance = &candle.distance;
    // A smaller distance means a higher price, so high and low are swapped.
    [distance.open, distance.low, distance.high, distance.close].map(|distance| price(distance, liquidity))
}

/// Returns the outcome with the index `only`, or all outcomes.
pub fn shown(outcomes: Vec<Outcome>, only: Option<u8>) -> impl Iterator<Item = Outcome> {
    outcomes.into_iter().filter(move |outcome| only.is_none_or(|only| only == outcome.index))
}

/// Returns the price of an outcome at the start of a history.
pub fn opening_price(history: &MarketHistory, outcome_index: u8, liquidity: Usdc) -> f64 {
    let opening = &history.opening;
    let quantity = opening.quantities.get(usize::from(outcome_index)).copied().unwrap_or_default();
    price(candle::distance(opening.cost, quantity), liquidity)
}

/// Returns the price if the quantity is `distance` below the cost.
pub fn price(distance: Wad, liquidity: Usdc) -> f64 {
    // Only the difference between cost and quantity matters, so the quantity can be zero.
    numbers::probability(Wad::ZERO, distance, liquidity)
}
