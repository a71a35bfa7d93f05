//! Determines the client's IP address. The socket's peer counts, unless it is a trusted proxy. Then
//! the rightmost hop that is not a trusted proxy counts, because the client can forge everything to
//! its left.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// The forwarding headers of a request, as received.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hops<'a> {
    /// The lines of `Forwarded` (RFC 7239).
    pub forwarded: &'a [&'a str],
    /// The lines of `X-Forwarded-For`.
    pub x_forwarded_for: &'a [&'a str],
}

/// Returns the client's address. IPv4 addresses mapped into IPv6 are returned as IPv4.
///
/// A proxy sets `Forwarded` or `X-Forwarded-For` and passes the other header through unchanged. If
/// both are present and lead to different addresses, one of them is forged, and only the proxy's
/// own address is known.
pub fn client_ip(peer: IpAddr, hops: Hops<'_>, trusted: &[IpNet]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|net| net.contains(ip));
    if !is_trusted(&peer) {
        return peer;
    }
    let by_forwarded = (!hops.forwarded.is_empty()).then(|| {
        let hops = hops.forwarded.iter().flat_map(|line| split_unquoted(line, ','));
        nearest_untrusted(peer, hops.map(forwarded_for), is_trusted)
    });
    let by_x_forwarded_for = (!hops.x_forwarded_for.is_empty()).then(|| {
        let hops = hops.x_forwarded_for.iter().flat_map(|line| line.split(','));
        nearest_untrusted(peer, hops.map(address), is_trusted)
    });
    match (by_forwarded, by_x_forwarded_for) {
        // One of the headers is forged.
        (Some(one), Some(other)) if one != other => peer,
        (Some(ip), _) | (None, Some(ip)) => ip,
        (None, None) => peer,
    }
}

/// Walks the hops from the peer outwards. Stops at a hop with a hidden address and returns the
/// proxy that reported it.
fn nearest_untrusted(
    peer: IpAddr,
    hops: impl Iterator<Item = Option<IpAddr>>,
    is_trusted: impl Fn(&IpAddr) -> bool,
) -> IpAddr {
    // Each proxy appends its hop, so the nearest one is the last.
    let mut nearest = peer;
    for hop in hops.collect::<Vec<_>>().into_iter().rev() {
        let Some(hop) = hop else { break };
        nearest = hop;
        if !is_trusted(&hop) {
            break;
        }
    }
    nearest
}

/// Returns the `for` parameter of one element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let parameters = split_unquoted(element, ';');
    let mut named = parameters.into_iter().filter_map(|parameter| parameter.trim().split_once('='));
    let (_, node) = named.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    address(node.strip_prefix('"').and_then(|node| node.strip_suffix('"')).unwrap_or(node))
}

/// Parses an address with or without a port, and IPv6 with or without brackets.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let ip =
        bare.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip())).ok()?;
    Some(ip.to_canonical())
}

/// Splits at `separator` outside of double quotes.
fn split_unquoted(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c: char| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peer, headers, and the expected address if 10.0.0.0/8 and 2001:db8:1::/48 are trusted.
    type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);

    const CASES: &[Case] = &[
        // From an untrusted peer, the headers mean nothing.
        ("192.0.2.1", &[("x-forwarded-for", "198.51.100.7")], "192.0.2.1"),
        ("192.0.2.1", &[("forwarded", "for=198.51.100.7")], "192.0.2.1"),
        ("::ffff:192.0.2.1", &[], "192.0.2.1"),
        ("10.0.0.1", &[], "10.0.0.1"),
        // The rightmost hop that is not a proxy.
        ("10.0.0.1", &[("x-forwarded-for", "198.51.100.7")], "198.51.100.7"),
        ("::ffff:10.0.0.1", &[("x-forwarded-for", "198.51.100.7")], "198.51.100.7"),
        ("10.0.0.1", &[("x-forwarded-for", "203.0.113.9, 198.51.100.7, 10.0.0.2")], "198.51.100.7"),
        (
            "10.0.0.1",
            &[("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "198.51.100.7")],
            "198.51.100.7",
        ),
        // All hops are proxies: the farthest one.
        ("10.0.0.1", &[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
        // Ports, brackets, mapped forms.
        ("10.0.0.1", &[("x-forwarded-for", "198.51.100.7:4711")], "198.51.100.7"),
        ("10.0.0.1", &[("x-forwarded-for", "[2001:db8::1]:4711")], "2001:db8::1"),
        ("10.0.0.1", &[("x-forwarded-for", "::ffff:198.51.100.7")], "198.51.100.7"),
        ("2001:db8:1::5", &[("x-forwarded-for", "2001:db8::1, 2001:db8:1::9")], "2001:db8::1"),
        ("10.0.0.1", &[("forwarded", "for=198.51.100.7;proto=https;by=10.0.0.1")], "198.51.100.7"),
        ("10.0.0.1", &[("forwarded", "by=10.0.0.1;For=\"[2001:db8::1]:4711\"")], "2001:db8::1"),
        ("10.0.0.1", &[("forwarded", "for=\"a, b;for=1.1.1.1\", for=198.51.100.7")], "198.51.100.7"),
        // A hidden hop ends the walk.
        ("10.0.0.1", &[("forwarded", "for=198.51.100.7, for=_hidden, for=10.0.0.2")], "10.0.0.2"),
        ("10.0.0.1", &[("x-forwarded-for", "198.51.100.7, unknown")], "10.0.0.1"),
        ("10.0.0.1", &[("x-forwarded-for", "")], "10.0.0.1"),
        // Two headers that disagree: one is forged.
        ("10.0.0.1", &[("forwarded", "for=203.0.113.9"), ("x-forwarded-for", "198.51.100.7")], "10.0.0.1"),
        (
            "10.0.0.1",
            &[("forwarded", "for=198.51.100.7"), ("x-forwarded-for", "198.51.100.7")],
            "198.51.100.7",
        ),
    ];

    /// Returns the values of the lines with this name.
    fn lines<'a>(all: &[(&str, &'a str)], name: &str) -> Vec<&'a str> {
        all.iter().filter(|(of, _)| *of == name).map(|(_, value)| *value).collect()
    }

    #[test]
    fn the_client_is_the_nearest_untrusted_hop() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "2001:db8:1::/48"].map(|net| net.parse().unwrap()).to_vec();
        for (peer, all, expected) in CASES {
            let (forwarded, x_forwarded_for) = (lines(all, "forwarded"), lines(all, "x-forwarded-for"));
            let hops = Hops { forwarded: &forwarded, x_forwarded_for: &x_forwarded_for };
            let found = client_ip(peer.parse().unwrap(), hops, &trusted);
            assert_eq!(found.to_string(), *expected, "{peer} {all:?}");
        }
    }

    #[test]
    fn without_trusted_proxies_only_the_socket_address_counts() {
        let hops = Hops { forwarded: &["for=198.51.100.7"], x_forwarded_for: &[] };
        assert_eq!(client_ip("10.0.0.1".parse().unwrap(), hops, &[]).to_string(), "10.0.0.1");
    }
}
