//! Rate limits as pure functions of their state and the current time: a sliding window, a token
//! bucket, and the lockout of addresses that fail to authenticate.
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
mod window;

use std::net::{IpAddr, Ipv6Addr};

pub use bucket::TokenBucket;
pub use lockout::Lockout;
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

/// Returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address,
/// because a subscriber usually has a whole /64.
pub fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_count_as_one() {
        for (ip, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
            ("2001:db8:1:3::", "2001:db8:1:3::"),
        ] {
            assert_eq!(network_of(ip.parse().unwrap()).to_string(), network, "{ip}");
        }
    }
}
