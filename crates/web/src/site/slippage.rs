//! The bound that a reader has chosen for the price of an order.

use axum::http::HeaderMap;
use http_kit::cookie;

pub const SLIPPAGE_COOKIE: &str = "slippage";
/// The bounds that a reader can choose, in hundredths of a percent, and their words.
pub const SLIPPAGES: [(u16, &str); 5] = [(25, "0.25%"), (50, "0.5%"), (100, "1%"), (200, "2%"), (500, "5%")];
/// The bound of a reader who has chosen none.
const USUAL_BPS: u16 = 100;

/// Returns the reader's bound, in hundredths of a percent.
pub fn slippage_of(headers: &HeaderMap) -> u16 {
    let chosen = cookie(headers, SLIPPAGE_COOKIE).and_then(|bps| bps.parse().ok());
    chosen.filter(|bps| SLIPPAGES.iter().any(|(known, _)| known == bps)).unwrap_or(USUAL_BPS)
}

/// Returns a bound in words, e.g. `0.5%`.
pub fn slippage_word(bps: u16) -> &'static str {
    SLIPPAGES.iter().find(|(known, _)| *known == bps).map_or("", |(_, word)| word)
}
