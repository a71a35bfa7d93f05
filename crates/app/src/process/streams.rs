//! What the open streams of this process show. The [budgets](crate::limits::budget) say how many there
//! may be.

use std::sync::Arc;

use super::boards::Board;
use super::live::{MarketPrices, MarketTail};

/// The streams of this process.
#[derive(Debug, Default)]
pub struct Streams {
    /// The prices of the markets that browsers follow.
    pub prices: Arc<Board<MarketPrices>>,
    /// The last events of the markets that streams of the public API follow.
    pub tails: Arc<Board<MarketTail>>,
}
