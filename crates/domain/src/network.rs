//! Parses IP networks: an address or a CIDR range.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

/// The prefix length of the range that contains all IPv4-mapped IPv6 addresses.
const MAPPED_PREFIX_LEN: u8 = 96;

/// Parses an address or a CIDR range. IPv4-mapped forms are converted to IPv4, because client
/// addresses are compared in that form. A mapped range larger than all of IPv4 has no IPv4 form and
/// is rejected.
pub fn parse(text: &str) -> Option<IpNet> {
    match text.parse::<IpAddr>() {
        Ok(ip) => Some(IpNet::from(ip.to_canonical())),
        Err(_) => unmapped(text.parse().ok()?),
    }
}

fn unmapped(net: IpNet) -> Option<IpNet> {
    let IpNet::V6(v6) = net else { return Some(net) };
    let Some(v4) = v6.addr().to_ipv4_mapped() else { return Some(net) };
    let prefix_len = v6.prefix_len().checked_sub(MAPPED_PREFIX_LEN)?;
    Ipv4Net::new(v4, prefix_len).ok().map(IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_addresses_and_ranges_are_parsed_as_ipv4() {
        for (text, read) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.0.0.1", Some("10.0.0.1/32")),
            ("::ffff:10.0.0.1", Some("10.0.0.1/32")),
            ("::ffff:127.0.0.0/104", Some("127.0.0.0/8")),
            ("::ffff:10.0.0.1/128", Some("10.0.0.1/32")),
            ("::ffff:0.0.0.0/96", Some("0.0.0.0/0")),
            ("::ffff:0.0.0.0/95", None),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("::/0", Some("::/0")),
            ("10.0.0.0/33", None),
            ("10.0.0", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(|net| net.to_string()).as_deref(), read, "{text}");
        }
    }
}
