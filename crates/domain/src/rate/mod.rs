//! Rate limits as pure functions of their state and the current time: sliding windows of requests and
//! of amounts, a token bucket, and the lockout of addresses that fail to authenticate.
//!
//! All arithmetic uses integers, so that nothing drifts. A clock that goes back counts as standing
//! still.
//!
//! The state belongs to a user, but each request brings its own limit, because the keys of a user
//! may have different limits. Each key is compared with the requests of all keys together.

mod bucket;
mod lockout;
#[cfg(test)]
mod model;
mod network;
mod slots;
mod window;

pub use bucket::TokenBucket;
pub use lockout::{DEFAULT_FAILURES, Lockout};
pub use network::{Scope, UnknownScope, network_in, network_of};
pub use slots::{NoRoom, SLOTS, SlotWindow};
pub use window::SlidingWindow;

use crate::Timestamp;
use crate::time::MINUTE_MS;

/// The period of all limits.
pub const WINDOW_MS: i64 = MINUTE_MS;

/// The result of asking a limit for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// True if the request may proceed. A rejected request uses nothing.
    pub allowed: bool,
    /// The maximum number of requests per minute.
    pub limit: u32,
    /// The number of further requests that would be allowed now.
    pub remaining: u32,
    /// The time at which the full limit is available again if no other request comes.
    pub reset_at: Timestamp,
    /// The time until the next request is allowed, in milliseconds; 0 if this one was allowed.
    pub retry_after_ms: i64,
}
