//! Tests of the target policy with URLs and addresses.

use super::TargetRefusal::{Address, Fragment, Malformed, Name, Port, Scheme, TooLong, UserInfo};
use super::*;

/// A URL and its result under the public policy: its normalized form, or the reason for rejecting
/// it.
const URLS: &[(&str, Result<&str, TargetRefusal>)] = &[
    // Typical receivers.
    ("https://hooks.example.com/foretell", Ok("https://hooks.example.com/foretell")),
    ("https://hooks.example.com", Ok("https://hooks.example.com/")),
    ("https://hooks.example.com:8443/a?b=c&d", Ok("https://hooks.example.com:8443/a?b=c&d")),
    ("https://hooks.example.com:443/", Ok("https://hooks.example.com/")),
    ("HTTPS://Hooks.EXAMPLE.com./", Ok("https://hooks.example.com/")),
    ("https://xn--bcher-kva.example/", Ok("https://xn--bcher-kva.example/")),
    ("https://bücher.example/ä", Ok("https://xn--bcher-kva.example/%C3%A4")),
    ("https://my_hooks.example.com/", Ok("https://my_hooks.example.com/")),
    ("https://9.9.9.9/", Ok("https://9.9.9.9/")),
    ("https://[2620:fe::fe]/", Ok("https://[2620:fe::fe]/")),
    ("https://[64:ff9b::9.9.9.9]/", Ok("https://[64:ff9b::909:909]/")),
    ("https://127.0.0.1.example.com/", Ok("https://127.0.0.1.example.com/")),
    ("https://localhost.example.com/", Ok("https://localhost.example.com/")),
    ("https://mylocal.example/", Ok("https://mylocal.example/")),
    // The loopback in all of its notations.
    ("https://127.0.0.1/", Err(Address)),
    ("https://127.0.0.1./", Err(Address)),
    ("https://127.1/", Err(Address)),
    ("https://127.0.1/", Err(Address)),
    ("https://2130706433/", Err(Address)),
    ("https://0x7f000001/", Err(Address)),
    ("https://0x7f.1/", Err(Address)),
    ("https://0X7F.0x0.0.0x1/", Err(Address)),
    ("https://0177.0.0.1/", Err(Address)),
    ("https://017700000001/", Err(Address)),
    ("https://１２７.0.0.1/", Err(Address)),
    ("https://127。0。0。1/", Err(Address)),
    ("https://①②⑦.0.0.1/", Err(Address)),
    ("https://%31%32%37.0.0.1/", Err(Address)),
    ("https://127.255.255.254/", Err(Address)),
    ("https://[::1]/", Err(Address)),
    ("https://[0:0:0:0:0:0:0:1]/", Err(Address)),
    ("https://[::ffff:127.0.0.1]/", Err(Address)),
    ("https://[::ffff:7f00:1]/", Err(Address)),
    ("https://[::127.0.0.1]/", Err(Address)),
    ("https://[64:ff9b::127.0.0.1]/", Err(Address)),
    ("https://[64:ff9b:1::127.0.0.1]/", Err(Address)),
    ("https://[2002:7f00:1::]/", Err(Address)),
    ("https://[2001:0:7f00:1::80ff:fffe]/", Err(Address)),
    ("https://localhost/", Err(Name)),
    ("https://LOCALHOST./", Err(Name)),
    ("https://api.localhost/", Err(Name)),
    ("https://ｌｏｃａｌｈｏｓｔ/", Err(Name)),
    ("https://localhost.localdomain/", Err(Name)),
    // The unspecified address, which connects to this host.
    ("https://0/", Err(Address)),
    ("https://0.0.0.0/", Err(Address)),
    ("https://0.1.2.3/", Err(Address)),
    ("https://[::]/", Err(Address)),
    ("https://[::ffff:0.0.0.0]/", Err(Address)),
    // Private and reserved networks.
    ("https://10.0.0.1/", Err(Address)),
    ("https://167772161/", Err(Address)),
    ("https://100.64.0.1/", Err(Address)),
    ("https://172.16.0.1/", Err(Address)),
    ("https://172.31.255.255/", Err(Address)),
    ("https://192.168.1.1/", Err(Address)),
    ("https://192.0.0.8/", Err(Address)),
    ("https://192.0.2.1/", Err(Address)),
    ("https://198.18.0.1/", Err(Address)),
    ("https://198.51.100.1/", Err(Address)),
    ("https://203.0.113.1/", Err(Address)),
    ("https://224.0.0.1/", Err(Address)),
    ("https://240.0.0.1/", Err(Address)),
    ("https://255.255.255.255/", Err(Address)),
    ("https://[fc00::1]/", Err(Address)),
    ("https://[fd12:3456::1]/", Err(Address)),
    ("https://[fe80::1]/", Err(Address)),
    ("https://[fec0::1]/", Err(Address)),
    ("https://[ff02::1]/", Err(Address)),
    ("https://[2001:db8::1]/", Err(Address)),
    ("https://[3fff::1]/", Err(Address)),
    ("https://[2001:2::1]/", Err(Address)),
    ("https://[4000::1]/", Err(Address)),
    ("https://[::ffff:0:10.0.0.1]/", Err(Address)),
    ("https://[64:ff9b::10.0.0.1]/", Err(Address)),
    ("https://[::ffff:9.9.9.9]/", Err(Address)),
    // Cloud metadata services.
    ("https://169.254.169.254/latest/meta-data/", Err(Address)),
    ("https://0xa9fea9fe/", Err(Address)),
    ("https://[fd00:ec2::254]/", Err(Address)),
    ("https://[::ffff:169.254.169.254]/", Err(Address)),
    ("https://100.100.100.200/", Err(Address)),
    ("https://168.63.129.16/", Err(Address)),
    ("https://metadata.google.internal/", Err(Name)),
    // Names of internal networks.
    ("https://redis/", Err(Name)),
    ("https://printer.local/", Err(Name)),
    ("https://api.default.svc/", Err(Name)),
    ("https://api.default.svc.cluster.local./", Err(Name)),
    ("https://router.home.arpa/", Err(Name)),
    ("https://wiki.corp/", Err(Name)),
    ("https://hooks..example.com/", Err(Name)),
    ("https://hooks.example.com../", Err(Name)),
    ("https://.example.com/", Err(Name)),
    ("https://*.example.com/", Err(Name)),
    // Other schemes.
    ("http://hooks.example.com/", Err(Scheme)),
    ("ftp://hooks.example.com/", Err(Scheme)),
    ("file://hooks.example.com/etc/passwd", Err(Scheme)),
    ("gopher://hooks.example.com/", Err(Scheme)),
    ("wss://hooks.example.com/", Err(Scheme)),
    // Parts that a webhook URL must not have.
    ("https://user@hooks.example.com/", Err(UserInfo)),
    ("https://user:password@hooks.example.com/", Err(UserInfo)),
    ("https://hooks.example.com@127.0.0.1/", Err(UserInfo)),
    ("https://:@127.0.0.1/", Err(Address)),
    ("https://hooks.example.com/#fragment", Err(Fragment)),
    ("https://hooks.example.com#@127.0.0.1/", Err(Fragment)),
    // Ports.
    ("https://hooks.example.com:0/", Err(Port)),
    ("https://hooks.example.com:22/", Err(Port)),
    ("https://hooks.example.com:25/", Err(Port)),
    ("https://hooks.example.com:1023/", Err(Port)),
    ("https://hooks.example.com:1024/", Ok("https://hooks.example.com:1024/")),
    ("https://hooks.example.com:6379/", Err(Port)),
    ("https://hooks.example.com:5432/", Err(Port)),
    ("https://hooks.example.com:3306/", Err(Port)),
    ("https://hooks.example.com:27017/", Err(Port)),
    ("https://hooks.example.com:2525/", Err(Port)),
    ("https://hooks.example.com:2049/", Err(Port)),
    ("https://hooks.example.com:6667/", Err(Port)),
    ("https://hooks.example.com:10080/", Err(Port)),
    ("https://9.9.9.9:6379/", Err(Port)),
    ("https://hooks.example.com:65536/", Err(Malformed)),
    ("https://hooks.example.com:x/", Err(Malformed)),
    // Texts that a parser would have to correct.
    ("", Err(Malformed)),
    ("hooks.example.com/foretell", Err(Malformed)),
    ("https:hooks.example.com/", Err(Malformed)),
    ("https:/hooks.example.com/", Err(Malformed)),
    ("https:///hooks.example.com/", Err(Malformed)),
    ("https://", Err(Malformed)),
    ("https://?a", Err(Malformed)),
    ("https:\\\\hooks.example.com\\", Err(Malformed)),
    ("https://hooks.example.com\\@127.0.0.1/", Err(Malformed)),
    (" https://hooks.example.com/", Err(Malformed)),
    ("https://hooks.exam\nple.com/", Err(Malformed)),
    ("https://hooks.example.com/a\tb", Err(Malformed)),
    ("https://hooks.example.com/\0", Err(Malformed)),
    ("https://hooks.example.com/\u{a0}", Err(Malformed)),
    ("https://hooks example.com/", Err(Malformed)),
    ("https://[::1/", Err(Malformed)),
    ("https://[fe80::1%25eth0]/", Err(Malformed)),
    ("https://256.256.256.256/", Err(Malformed)),
    ("https://1.2.3.4.5/", Err(Malformed)),
    ("https://0x100000000/", Err(Malformed)),
];

#[test]
fn a_url_is_validated_by_its_real_destination() {
    let policy = TargetPolicy::public();
    for (text, expected) in URLS {
        let found = Target::parse(text, &policy);
        assert_eq!(found.as_ref().map(Target::as_str).map_err(|refusal| *refusal), *expected, "{text:?}");
    }
}

#[test]
fn development_admits_http_and_loopback() {
    let policy = TargetPolicy::development();
    for text in [
        "http://localhost:9999/",
        "http://127.0.0.1/",
        "http://[::1]:80/",
        "http://receiver:3000/",
        "http://host.docker.internal/",
        "http://192.168.1.2/",
        "http://[fd12::1]/",
        "https://hooks.example.com/",
    ] {
        assert!(Target::parse(text, &policy).is_ok(), "{text}");
    }
}

#[test]
fn impossible_receiver_addresses_are_always_rejected() {
    let everything = TargetPolicy::development()
        .admitting("0.0.0.0/0".parse().unwrap())
        .admitting("::/0".parse().unwrap());
    for policy in [TargetPolicy::development(), everything] {
        for (text, expected) in [
            ("http://169.254.169.254/", Address),
            ("http://[fd00:ec2::254]/", Address),
            ("http://[::ffff:127.0.0.1]/", Address),
            ("http://[::ffff:169.254.169.254]/", Address),
            ("http://[64:ff9b::169.254.169.254]/", Address),
            ("http://[2002:a9fe:a9fe::]/", Address),
            ("http://0.0.0.0/", Address),
            ("http://[::]/", Address),
            ("http://[fe80::1]/", Address),
            ("http://224.0.0.1/", Address),
            ("http://localhost:0/", Port),
            ("http://user@localhost/", UserInfo),
            ("http://localhost/#a", Fragment),
            ("ftp://localhost/", Scheme),
        ] {
            assert_eq!(Target::parse(text, &policy).err(), Some(expected), "{text}");
        }
    }
}

#[test]
fn admitting_a_network_admits_only_that_network() {
    let policy = TargetPolicy::public().admitting("10.1.0.0/16".parse().unwrap());
    assert!(Target::parse("https://10.1.255.255/", &policy).is_ok());
    assert_eq!(Target::parse("https://10.2.0.0/", &policy).err(), Some(Address));
    assert_eq!(Target::parse("http://10.1.0.1/", &policy).err(), Some(Scheme));
}

#[test]
fn a_url_has_at_most_2048_bytes_as_sent_and_as_stored() {
    let policy = TargetPolicy::public();
    let of_length = |length: usize| format!("{:a<length$}", "https://hooks.example.com/");
    assert!(Target::parse(&of_length(2_048), &policy).is_ok());
    assert_eq!(Target::parse(&of_length(2_049), &policy).err(), Some(TooLong));
    let growing = format!("https://hooks.example.com/{}", "ä".repeat(400));
    assert_eq!(Target::parse(&growing, &policy).err(), Some(TooLong));
}

#[test]
fn names_have_at_most_253_characters_in_labels_of_63() {
    let policy = TargetPolicy::public();
    let parse = |name: &str| Target::parse(&format!("https://{name}/"), &policy).err();
    assert_eq!(parse(&format!("{}.example", "a".repeat(63))), None);
    assert_eq!(parse(&format!("{}.example", "a".repeat(64))), Some(Name));
    let name = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
    assert_eq!((name.len(), parse(&name)), (253, None));
    assert_eq!(parse(&format!("{name}b")), Some(Name));
}

#[test]
fn a_target_has_the_parts_that_a_request_needs() {
    let policy = TargetPolicy::development();
    let target = Target::parse("https://Hooks.example.com.:8443/a/b?c=d", &policy).unwrap();
    assert_eq!(target.host(), &TargetHost::Name("hooks.example.com".to_owned()));
    assert_eq!((target.port(), target.is_https()), (8_443, true));
    assert_eq!(target.origin(), "https://hooks.example.com:8443");
    assert_eq!(target.authority(), "hooks.example.com:8443");
    assert_eq!(target.path_and_query(), "/a/b?c=d");
    let target = Target::parse("http://[::1]", &policy).unwrap();
    assert_eq!(target.host(), &TargetHost::Address("::1".parse().unwrap()));
    assert_eq!((target.origin(), target.authority()), ("http://[::1]:80", "[::1]"));
    assert_eq!((target.port(), target.is_https(), target.path_and_query()), (80, false, "/"));
}

#[test]
fn only_the_origin_of_a_target_is_logged() {
    let target = Target::parse("https://hooks.example.com/secret?token=1", &TargetPolicy::public()).unwrap();
    assert_eq!(format!("{target:?}"), r#"Target("https://hooks.example.com:443")"#);
}

/// Checks the first and last address of each network that is not public, and their public
/// neighbors.
#[test]
fn non_public_networks_have_the_exact_bounds() {
    let edges: &[(&str, &str, &str, &str)] = &[
        ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
        ("223.255.255.255", "224.0.0.0", "255.255.255.255", ""),
        ("", "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
        ("2000:ffff::", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"),
        ("2001:db7:ffff::", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"),
        ("2001:ffff::", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"),
        ("3ffe:ffff::", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"),
        ("3fff:ffff::", "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ];
    for (before, first, last, after) in edges {
        for ip in [first, last] {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in [before, after].into_iter().filter(|ip| !ip.is_empty()) {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
    }
}
