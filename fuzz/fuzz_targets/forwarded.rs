//! Fuzzes `Forwarded` and `X-Forwarded-For`. They must not change the address of an untrusted peer.
//! Behind a trusted peer, the address must be in canonical form.
#![no_main]

use std::net::IpAddr;

use protocol::forwarded::{Hops, client_ip};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<&str>, Vec<&str>)| {
    let (forwarded, x_forwarded_for) = (input.0, input.1);
    let hops = Hops { forwarded: &forwarded, x_forwarded_for: &x_forwarded_for };
    let trusted = ["10.0.0.0/8".parse().unwrap(), "2001:db8:1::/48".parse().unwrap()];
    let stranger: IpAddr = [192, 0, 2, 1].into();
    assert_eq!(client_ip(stranger, hops, &trusted), stranger);
    let found = client_ip([10, 0, 0, 1].into(), hops, &trusted);
    assert_eq!(found, found.to_canonical());
});
