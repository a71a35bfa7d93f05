//! Live data: a user's feed of events, and the public trades and statuses of a market.
//!
//! Both are read from the tables by a position that only grows, so a client that was disconnected
//! can resume. The [`Hub`](crate::process::feed_hub::Hub) tells a user's streams when to read again.
//! Streams of markets read only at their beginning. Then the [`Watcher`] reads each changed market
//! once and puts what it found on a [`Board`](crate::process::boards::Board), from where they send it.

mod market;
mod read;
mod rounds;
mod watcher;

pub use crate::process::boards::Follower;
pub use crate::process::feed_hub::{Closing, Subscription, Topic, WakeReason};
pub use crate::process::live::{Happening, MarketPrices, MarketTail};
pub use market::{MarketEventsPage, first_position, newest_prices, read_market};
pub use read::{FeedStart, Part, read};
pub use watcher::Watcher;
