//! Live data: a user's feed of events, and the public trades and statuses of a market.
//!
//! Both are read from the tables by a position that only grows, so a client that was disconnected
//! can resume. The [`Hub`](crate::process::feed_hub::Hub) only signals when to read again.

mod market;
mod read;
mod watcher;

pub use crate::process::feed_hub::{Subscription, Topic, WakeReason};
pub use market::{Happening, MarketEventsPage, first_position, read_market};
pub use read::{FeedStart, Part, read};
pub use watcher::Watcher;
