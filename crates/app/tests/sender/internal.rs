//! No delivery ever reaches an internal address. The canary listens on every address of this
//! machine, in both families.

use std::sync::Arc;

use app::webhooks::sender::PostOutcome;
use domain::webhook::target::{Target, TargetPolicy};

use crate::receiver::Receiver;
use crate::{Names, local_target, post, sender};

/// Hosts that lead to this machine, or would if a check were missing.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127.255.255.254",
    "2130706433",
    "2130706434",
    "0x7f000001",
    "0X7F000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "0177.0.0.01",
    "017700000001",
    "00000000177.0.0.1",
    "127.0x1",
    "127.0.0x0.1",
    "１２７.0.0.1",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "127．0．0．1",
    "127｡0｡0｡1",
    "%31%32%37.0.0.1",
    "%31%32%37%2E0%2E0%2E1",
    "0x7F.0.0.0X1",
    "0",
    "0.0.0.0",
    "0x0",
    "00",
    "0.1",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0.0.0.1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:0.0.0.0]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[2001:0:7f00:1::80ff:fffe]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "LocalHost.",
    "ｌｏｃａｌｈｏｓｔ",
    "%6cocalhost",
    "a.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "ip6-loopback",
    "canary.local",
    "canary.internal",
    "user@127.0.0.1",
    "hooks.example.com@127.0.0.1",
    "hooks.example.com:443@127.0.0.1",
    ":@127.0.0.1",
];

/// DNS answers with internal addresses, only or mixed with public ones, which must not be called
/// either.
const ANSWERS: &[&[&str]] = &[
    &["127.0.0.1"],
    &["127.0.0.2"],
    &["::1"],
    &["0.0.0.0"],
    &["::"],
    &["::ffff:127.0.0.1"],
    &["::127.0.0.1"],
    &["64:ff9b::7f00:1"],
    &["2002:7f00:1::1"],
    &["10.0.0.1"],
    &["172.16.0.1"],
    &["192.168.0.1"],
    &["100.64.0.1"],
    &["169.254.169.254"],
    &["fd00:ec2::254"],
    &["fe80::1"],
    &["fc00::1"],
    &["224.0.0.1"],
    &["255.255.255.255"],
    &["9.9.9.9", "127.0.0.1"],
    &["127.0.0.1", "9.9.9.9"],
    &["2620:fe::fe", "9.9.9.9", "149.112.112.112", "::1"],
];

/// Accepts connections on every address of this machine and closes them.
async fn canary() -> Receiver {
    let everywhere = if std::net::TcpListener::bind("[::1]:0").is_ok() { "[::]:0" } else { "0.0.0.0:0" };
    Receiver::at(everywhere, |_, _, _| async {}).await
}

#[tokio::test]
async fn no_spelling_of_an_internal_address_reaches_it() {
    let canary = canary().await;
    let sender = sender(TargetPolicy::public(), Arc::default());
    assert!(HOSTS.len() >= 60);
    for host in HOSTS {
        let url = format!("https://{host}:{}/", canary.address.port());
        assert!(Target::parse(&url, &TargetPolicy::public()).is_err(), "{url}");
        // As if another policy had accepted the URL's text.
        if let Ok(target) = Target::parse(&url, &TargetPolicy::development()) {
            assert_eq!(post(&sender, &target).await.outcome, PostOutcome::TargetRefused, "{url}");
        }
    }
    assert_eq!(canary.seen.connections(), 0);
}

#[tokio::test]
async fn no_name_reaches_an_internal_address() {
    let canary = canary().await;
    for answer in ANSWERS {
        let names = Arc::new(Names::default().with("hooks.example.com", &[answer]));
        let sender = sender(TargetPolicy::public(), Arc::clone(&names));
        let target = local_target(&format!("https://hooks.example.com:{}/", canary.address.port()));
        assert_eq!(post(&sender, &target).await.outcome, PostOutcome::TargetRefused, "{answer:?}");
        assert_eq!(names.asked("hooks.example.com"), 1);
    }
    assert_eq!(canary.seen.connections(), 0);
}

#[tokio::test]
async fn a_dns_change_after_the_check_has_no_effect() {
    let canary = Receiver::at("127.0.0.1:0", |_, _, _| async {}).await;
    // Stands for a receiver outside: an allowed address of this machine.
    let outside = format!("127.0.0.2:{}", canary.address.port());
    let outside = Receiver::at(&outside, |_, _, _| async {}).await;
    let names = Arc::new(Names::default().with("hooks.example.com", &[&["127.0.0.2"], &["127.0.0.1"]]));
    let policy = TargetPolicy::public().admitting("127.0.0.2/32".parse().unwrap());
    let sender = sender(policy, Arc::clone(&names));
    let target = local_target(&format!("https://hooks.example.com:{}/", canary.address.port()));
    let first = post(&sender, &target).await.outcome;
    assert_ne!(first, PostOutcome::TargetRefused);
    assert_eq!((names.asked("hooks.example.com"), outside.seen.connections()), (1, 1));
    for _ in 0..3 {
        assert_eq!(post(&sender, &target).await.outcome, PostOutcome::TargetRefused);
    }
    assert_eq!((outside.seen.connections(), canary.seen.connections()), (1, 0));
}

/// The control: with the wrong policy, every spelling of this machine's addresses reaches the
/// canary.
#[tokio::test]
async fn the_canary_detects_a_wrong_policy() {
    let canary = canary().await;
    let names = Names::default().with("localhost", &[&["127.0.0.1", "::1"]]);
    let names = names.with("hooks.example.com", &[&["127.0.0.1"]]);
    let sender = sender(TargetPolicy::development(), Arc::new(names));
    let mut hosts = vec!["127.0.0.1", "127.0.0.2", "2130706433", "0x7f.1", "１２７.0.0.1", "localhost"];
    hosts.push("hooks.example.com");
    hosts.extend(canary.address.is_ipv6().then_some("[::1]"));
    for (before, host) in hosts.iter().enumerate() {
        assert_eq!(canary.seen.connections(), before, "{host}");
        post(&sender, &local_target(&format!("https://{host}:{}/", canary.address.port()))).await;
    }
    assert_eq!(canary.seen.connections(), hosts.len());
}
