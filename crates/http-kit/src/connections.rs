//! Counts the open connections of each network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::rate::network_of;
use parking_lot::Mutex;

use super::TrustedProxies;
use super::throttle::Throttle;

/// Minimum time between two warnings about closed connections.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Open connections by network: an IPv4 address or an IPv6 /64.
pub struct Connections {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    limit: usize,
    exempt: TrustedProxies,
    warnings: Throttle,
}

/// A counted connection. Dropping it decrements its network's count.
pub struct Place {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    network: IpAddr,
}

impl Connections {
    /// Allows at most `limit` connections per network, except for addresses in `exempt`.
    pub fn new(limit: usize, exempt: TrustedProxies) -> Self {
        Self { open: Arc::default(), limit, exempt, warnings: Throttle::every(WARN_EVERY) }
    }

    /// Counts a connection from `ip`, or returns `None` if its network has reached the limit.
    pub fn admit(&self, ip: IpAddr) -> Option<Place> {
        // An IPv4 client on an IPv6 socket must match IPv4 ranges.
        let (ip, network) = (ip.to_canonical(), network_of(ip));
        let exempt = self.exempt.contains(ip);
        let mut open = self.open.lock();
        let count = open.entry(network).or_insert(0);
        if *count >= self.limit && !exempt {
            // Release the lock before logging, which may block.
            drop(open);
            self.warn(network);
            return None;
        }
        *count += 1;
        Some(Place { open: Arc::clone(&self.open), network })
    }

    fn warn(&self, network: IpAddr) {
        if let Some(closed) = self.warnings.pass(Instant::now()) {
            tracing::warn!(
                %network, limit = self.limit, closed,
                "closed connections: their address has too many open ones. If it is a proxy, add it to trusted-proxies"
            );
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.network) {
            *count -= 1;
            // Remove empty entries, or every address that ever connected would use memory.
            if *count == 0 {
                open.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_has_a_connection_limit_and_a_closed_connection_frees_a_slot() {
        let connections = Connections::new(2, TrustedProxies::from(vec!["10.0.0.0/8".parse().unwrap()]));
        let admit = |ip: &str| connections.admit(ip.parse().unwrap());
        let places =
            [admit("2001:db8::1"), admit("2001:db8::2"), admit("192.0.2.1"), admit("::ffff:192.0.2.1")];
        assert!(places.iter().all(Option::is_some));
        assert!(admit("2001:db8::3").is_none() && admit("192.0.2.1").is_none());
        assert!(admit("2001:db8:0:1::3").is_some() && admit("192.0.2.2").is_some());
        let proxied: Vec<_> = (0..9).map(|_| admit("10.1.2.3").unwrap()).collect();
        drop((places, proxied));
        assert!(admit("2001:db8::3").is_some());
        assert!(connections.open.lock().is_empty(), "nothing is kept of closed connections");
    }
}
