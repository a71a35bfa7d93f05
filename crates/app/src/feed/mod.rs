//! What is told as it happens: a user's feed of events, and a market's trades and statuses for everybody.
//!
//! Both are read from the tables by a position that only grows, so that whoever was cut off goes on where they were. The
//! [`Hub`] only says when it makes sense to read again.

mod hub;
mod market;
mod read;

pub use hub::{Hub, Subscription, Topic, Wake, Watcher};
pub use market::{Happening, Told, first_position, read_market};
pub use read::{Part, Place, read};
