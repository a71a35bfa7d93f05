//! Limits on how often somebody may call, as pure functions of what was and of now: a sliding window, a token bucket, and
//! the lockout of addresses that fail to authenticate.
//!
//! Integers alone, so that nothing drifts; a clock that goes back is taken to stand still. What a limit remembers belongs to
//! a user, while the number comes with each request, since keys of one user may have different ones: every key sees what
//! all of them have used, against its own number.

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

/// The time that limits speak of: so many requests in so many milliseconds.
pub const WINDOW_MS: i64 = MINUTE_MS;

/// What a limit says to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the request may go on. One that may not has used nothing up.
    pub allowed: bool,
    /// The most requests a minute.
    pub limit: u32,
    /// How many more would be allowed at this instant.
    pub remaining: u32,
    /// When that is the whole limit again, if nothing else comes.
    pub reset_at: Timestamp,
    /// How long until one more is allowed, in milliseconds; 0 where this one was.
    pub retry_after_ms: i64,
}

/// Whom an address stands for: itself, and in IPv6 its /64, which one subscriber has whole.
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
    fn addresses_of_one_subscriber_count_as_one() {
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
