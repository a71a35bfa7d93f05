//! Budgets of what strangers hold at once, such as open streams.
//!
//! A budget counts an address, the networks around it, and everybody together. Who rents a whole
//! IPv4 /24 or IPv6 /48 gets a small multiple of one address's share, and not 256 or 65,536 of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use domain::ErrorCode;
use domain::rate::network_of;
use parking_lot::Mutex;

use crate::AppError;

/// The share of a /24 (IPv6: of a /56), in shares of one address.
const NETWORK_SHARES: usize = 4;
/// The share of an IPv6 /48, in shares of one address.
const SITE_SHARES: usize = 8;
/// The retry time in seconds of a refusal. Only somebody's end frees a place.
const RETRY_AFTER_S: u32 = 5;

/// The most of one resource that may be held at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The limiter's name in errors.
    pub limiter: &'static str,
    /// What is counted, in words and in the plural.
    pub what: &'static str,
    /// The share of one address (IPv6: of one /64).
    pub per_address: usize,
    pub total: usize,
}

/// What is held of one resource.
#[derive(Debug, Default)]
pub struct Places {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    by_network: HashMap<Network, usize>,
}

/// Some places. Dropping it frees them.
#[derive(Debug)]
#[must_use]
pub struct Place {
    places: Arc<Places>,
    ip: IpAddr,
    count: usize,
}

/// A network that counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Network {
    Address(IpAddr),
    /// An IPv4 /24 or an IPv6 /56.
    Subnet(IpAddr),
    /// An IPv6 /48.
    Site(Ipv6Addr),
}

impl Network {
    const fn limit(self, budget: &Budget) -> usize {
        let shares = match self {
            Self::Address(_) => 1,
            Self::Subnet(_) => NETWORK_SHARES,
            Self::Site(_) => SITE_SHARES,
        };
        budget.per_address.saturating_mul(shares)
    }

    const fn holder(self) -> &'static str {
        match self {
            Self::Address(_) => "Your address",
            Self::Subnet(_) | Self::Site(_) => "Your network",
        }
    }
}

/// Returns the networks of an address, the narrowest first.
fn networks(ip: IpAddr) -> impl Iterator<Item = Network> {
    let (subnet, site) = match ip.to_canonical() {
        IpAddr::V4(ip) => (IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & (u32::MAX << 8))), None),
        IpAddr::V6(ip) => {
            let first = |prefix: u32| Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - prefix)));
            (IpAddr::V6(first(56)), Some(Network::Site(first(48))))
        }
    };
    [Network::Address(network_of(ip)), Network::Subnet(subnet)].into_iter().chain(site)
}

impl Places {
    /// Takes `count` places for a client at `ip`, all or none.
    ///
    /// # Errors
    /// `RATE_LIMIT_EXCEEDED` if the address, one of its networks, or everybody together would then
    /// hold more than the budget.
    pub fn take(self: &Arc<Self>, budget: &Budget, ip: IpAddr, count: usize) -> Result<Place, AppError> {
        let mut held = self.held.lock();
        for network in networks(ip) {
            let own = held.by_network.get(&network).copied().unwrap_or_default();
            let limit = network.limit(budget);
            if own.saturating_add(count) > limit {
                return Err(exceeded(budget, network.holder(), own, limit, count));
            }
        }
        if held.total.saturating_add(count) > budget.total {
            return Err(exceeded(budget, "This process", held.total, budget.total, count));
        }
        held.total += count;
        for network in networks(ip) {
            *held.by_network.entry(network).or_default() += count;
        }
        Ok(Place { places: Arc::clone(self), ip, count })
    }

    /// Returns the number of places that are held.
    pub fn held(&self) -> usize {
        self.held.lock().total
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held.lock();
        held.total -= self.count;
        for network in networks(self.ip) {
            if let Some(own) = held.by_network.get_mut(&network) {
                *own -= self.count;
                if *own == 0 {
                    held.by_network.remove(&network);
                }
            }
        }
    }
}

fn exceeded(budget: &Budget, holder: &str, held: usize, limit: usize, count: usize) -> AppError {
    let Budget { limiter, what, .. } = *budget;
    let detail = format!(
        "{holder} has {held} of at most {limit} {what}, and this request needs {count} more. Close some, or \
         try again later."
    );
    AppError::new(ErrorCode::RateLimitExceeded)
        .detail(detail)
        .with("limiter", limiter)
        .retry_after_s(RETRY_AFTER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { limiter: "streams", what: "open streams", per_address: 2, total: 20 };

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_share_until_a_place_is_freed() {
        let places = Arc::<Places>::default();
        let first = places.take(&BUDGET, ip("192.0.2.1"), 1).unwrap();
        let second = places.take(&BUDGET, ip("::ffff:192.0.2.1"), 1).unwrap();
        let refusal = places.take(&BUDGET, ip("192.0.2.1"), 1).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::RateLimitExceeded);
        assert!(
            refusal.detail.starts_with("Your address has 2 of at most 2 open streams"),
            "{}",
            refusal.detail
        );
        let other = places.take(&BUDGET, ip("192.0.2.2"), 2).unwrap();
        drop(first);
        let third = places.take(&BUDGET, ip("192.0.2.1"), 1).unwrap();
        drop((second, third, other));
        assert_eq!(places.held(), 0);
        assert!(places.held.lock().by_network.is_empty(), "nothing is remembered of clients who have left");
    }

    #[test]
    fn a_request_takes_all_its_places_or_none() {
        let places = Arc::<Places>::default();
        let one = places.take(&BUDGET, ip("192.0.2.1"), 1).unwrap();
        assert!(places.take(&BUDGET, ip("192.0.2.1"), 2).is_err());
        assert_eq!(places.held(), 1);
        drop(one);
    }

    #[test]
    fn the_addresses_of_a_network_share_a_multiple_of_one_share() {
        let of_v4: fn(usize) -> String = |n| format!("192.0.2.{n}");
        let of_subnet = |n| format!("2001:db8:0:{n:x}::1");
        let of_site = |n| format!("2001:db8:0:{n:x}00::1");
        for (address, limit) in [(of_v4, 8), (of_subnet, 8), (of_site, 16)] {
            let places = Arc::<Places>::default();
            let taken: Vec<_> =
                (1..=20).filter_map(|n| places.take(&BUDGET, ip(&address(n)), 1).ok()).collect();
            assert_eq!(taken.len(), limit, "{}", address(1));
        }
    }

    #[test]
    fn all_networks_together_are_bounded() {
        let places = Arc::<Places>::default();
        let taken: Vec<_> =
            (1..=30).filter_map(|n| places.take(&BUDGET, ip(&format!("10.0.{n}.1")), 1).ok()).collect();
        assert_eq!(taken.len(), BUDGET.total);
        let refusal = places.take(&BUDGET, ip("192.0.2.1"), 1).unwrap_err();
        assert!(refusal.detail.starts_with("This process has 20 of at most 20"), "{}", refusal.detail);
    }
}
