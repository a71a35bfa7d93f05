//! Classifies IP addresses as public, local or forbidden, based on IANA's special-purpose address
//! registries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// The reach of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Public,
    /// This machine, a private network, or a range that must not be announced.
    Local,
    /// An address that can never be a receiver: cloud metadata, multicast, or one that embeds
    /// another address.
    Never,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix_len: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_len)
}

const fn v6(a: u16, b: u16, c: u16, prefix_len: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix_len)
}

const NEVER_V4: &[Ipv4Net] = &[
    v4(0, 0, 0, 0, 8),          // this host: connects to the loopback on many systems
    v4(169, 254, 0, 0, 16),     // link-local, including most clouds' metadata
    v4(100, 100, 100, 200, 32), // Alibaba Cloud metadata
    v4(168, 63, 129, 16, 32),   // Azure's host, with a public address
    v4(192, 0, 0, 192, 32),     // Oracle Cloud metadata
    v4(224, 0, 0, 0, 4),        // multicast
    v4(255, 255, 255, 255, 32), // broadcast
];

const LOCAL_V4: &[Ipv4Net] = &[
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // carrier-grade NAT
    v4(127, 0, 0, 0, 8),     // loopback
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(198, 18, 0, 0, 15),   // benchmarking
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(240, 0, 0, 0, 4),     // reserved
];

const NEVER_V6: &[Ipv6Net] = &[
    v6(0, 0, 0, 96),          // unspecified, and deprecated IPv4-compatible addresses
    v6(0x64, 0xff9b, 1, 48),  // local-use translation to IPv4
    v6(0x2001, 0, 0, 32),     // Teredo: embeds an IPv4 address
    v6(0x2002, 0, 0, 16),     // 6to4: embeds an IPv4 address
    v6(0xfd00, 0xec2, 0, 32), // Amazon Web Services metadata
    v6(0xfd20, 0xce, 0, 32),  // Google Cloud metadata
    v6(0xfe80, 0, 0, 10),     // link-local
    v6(0xff00, 0, 0, 8),      // multicast
];

const LOCAL_V6: &[Ipv6Net] = &[
    v6(0x2001, 0, 0, 23),     // protocol assignments, benchmarking, overlays
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x3fff, 0, 0, 20),     // documentation
];

/// All of IPv6 that is allocated for public routing. The rest is loopback, unique-local or
/// reserved.
const GLOBAL_UNICAST_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// The translation prefix of networks that have only IPv6. Their name servers return such addresses
/// for public IPv4 hosts.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

pub(super) fn reach(ip: IpAddr) -> Reach {
    match ip {
        IpAddr::V4(ip) => reach_v4(ip),
        IpAddr::V6(ip) => reach_v6(ip),
    }
}

fn reach_v4(ip: Ipv4Addr) -> Reach {
    let within = |networks: &[Ipv4Net]| networks.iter().any(|network| network.contains(&ip));
    if within(NEVER_V4) {
        Reach::Never
    } else if within(LOCAL_V4) {
        Reach::Local
    } else {
        Reach::Public
    }
}

fn reach_v6(ip: Ipv6Addr) -> Reach {
    let within = |networks: &[Ipv6Net]| networks.iter().any(|network| network.contains(&ip));
    if ip.is_loopback() {
        Reach::Local
    } else if NAT64.contains(&ip) {
        // Classify the embedded IPv4 address, or the prefix would give access to private ones.
        let [.., a, b, c, d] = ip.octets();
        reach_v4(Ipv4Addr::new(a, b, c, d))
    } else if ip.to_ipv4_mapped().is_some() || within(NEVER_V6) {
        Reach::Never
    } else if !GLOBAL_UNICAST_V6.contains(&ip) || within(LOCAL_V6) {
        Reach::Local
    } else {
        Reach::Public
    }
}
