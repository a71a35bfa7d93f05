//! The networks that an address belongs to. A stranger who is limited by address takes more
//! addresses: 256 of an IPv4 /24, or 65,536 subnets of an IPv6 /48, which a tunnel gives away for
//! free. So limits also count networks, with a multiple of the limit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::words::words;

words! {
    /// Whose uses a share counts together.
    Scope, UnknownScope {
        /// One user, whatever the address.
        User = "user",
        /// An IPv4 address or an IPv6 /64.
        Address = "address",
        /// An IPv4 /24 or an IPv6 /56.
        Network = "network",
        /// An IPv6 /48. IPv4 addresses have none.
        Site = "site",
        /// All together.
        Total = "total",
    }
}

/// Returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address,
/// because a subscriber usually has a whole /64.
pub fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => masked_v6(ip, 64),
    }
}

/// Returns the first address of the network that `scope` counts as one, or `None` if the scope does
/// not depend on the address, or does not exist for IPv4.
pub fn network_in(scope: Scope, ip: IpAddr) -> Option<IpAddr> {
    match (scope, ip.to_canonical()) {
        (Scope::Address, ip) => Some(network_of(ip)),
        (Scope::Network, IpAddr::V4(ip)) => {
            Some(IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & (u32::MAX << 8))))
        }
        (Scope::Network, IpAddr::V6(ip)) => Some(masked_v6(ip, 56)),
        (Scope::Site, IpAddr::V6(ip)) => Some(masked_v6(ip, 48)),
        (Scope::Site, IpAddr::V4(_)) | (Scope::User | Scope::Total, _) => None,
    }
}

const fn masked_v6(ip: Ipv6Addr, prefix: u32) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - prefix))))
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

    #[test]
    fn an_address_belongs_to_wider_networks() {
        for (ip, network, site) in [
            ("192.0.2.7", "192.0.2.0", None),
            ("::ffff:192.0.2.255", "192.0.2.0", None),
            ("2001:db8:1:2ff:3::1", "2001:db8:1:200::", Some("2001:db8:1::")),
            ("2001:db8:1:300::", "2001:db8:1:300::", Some("2001:db8:1::")),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            let found = |scope| network_in(scope, ip).map(|network| network.to_string());
            assert_eq!(found(Scope::Address), Some(network_of(ip).to_string()));
            assert_eq!(found(Scope::Network).as_deref(), Some(network), "{ip}");
            assert_eq!(found(Scope::Site).as_deref(), site, "{ip}");
            assert_eq!((found(Scope::User), found(Scope::Total)), (None, None));
        }
    }
}
