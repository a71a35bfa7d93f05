//! Fuzzes lists of addresses and CIDR ranges. A parsed list must survive a round trip and allow the
//! same addresses.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::key::IpAllowlist;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, [u8; 4], [u8; 16])| {
    let (text, v4, v6) = input;
    let Ok(list) = text.parse::<IpAllowlist>() else { return };
    let again: IpAllowlist = list.to_string().parse().expect("what was written can be read");
    for ip in [IpAddr::V4(Ipv4Addr::from(v4)), IpAddr::V6(Ipv6Addr::from(v6))] {
        assert_eq!(list.allows(ip), again.allows(ip));
    }
    let v4 = Ipv4Addr::from(v4);
    assert_eq!(list.allows(IpAddr::V4(v4)), list.allows(IpAddr::V6(v4.to_ipv6_mapped())));
});
