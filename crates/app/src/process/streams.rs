//! The open streams of this process: what they show, and what they may take.

use std::sync::Arc;

use super::boards::Board;
use super::live::{MarketPrices, MarketTail};
use crate::limits::places::{Budget, Places};

/// Streams of events that one address may have open, of all its users.
pub const FEED_STREAMS: Budget =
    Budget { limiter: "streams", what: "open streams", per_address: 50, total: 1_000 };
/// Anonymous streams of the public API.
pub const MARKET_STREAMS: Budget =
    Budget { limiter: "streams", what: "open streams", per_address: 10, total: 1_000 };
/// Browsers that one address may have open at once.
const BROWSERS_PER_ADDRESS: usize = 100;
/// Markets that the browsers of one address follow together: 20 for each of them.
const TOPICS_PER_ADDRESS: usize = 2_000;
/// Markets that all browsers of this process follow together, for each browser that it may have.
const TOPICS_PER_BROWSER: usize = 10;

/// Returns the budget of browsers that follow pages, of which this process may have `max_streams`.
pub const fn browsers(max_streams: usize) -> Budget {
    Budget { limiter: "streams", what: "open streams", per_address: BROWSERS_PER_ADDRESS, total: max_streams }
}

/// Returns the budget of the markets that these browsers follow.
pub const fn browser_topics(max_streams: usize) -> Budget {
    Budget {
        limiter: "topics",
        what: "markets in open streams",
        per_address: TOPICS_PER_ADDRESS,
        total: max_streams.saturating_mul(TOPICS_PER_BROWSER),
    }
}

/// The streams of this process.
#[derive(Debug, Default)]
pub struct Streams {
    /// The prices of the markets that browsers follow.
    pub prices: Arc<Board<MarketPrices>>,
    /// The last events of the markets that streams of the public API follow.
    pub tails: Arc<Board<MarketTail>>,
    pub feed_places: Arc<Places>,
    pub market_places: Arc<Places>,
    pub browser_places: Arc<Places>,
    pub topic_places: Arc<Places>,
}

impl Streams {
    /// Returns the number of open streams.
    pub fn open(&self) -> usize {
        [&self.feed_places, &self.market_places, &self.browser_places]
            .map(|places| places.held())
            .iter()
            .sum()
    }
}
