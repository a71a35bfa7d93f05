//! The client's address, derived from the socket and the forwarding headers of trusted proxies.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::http::header::FORWARDED;
use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use protocol::forwarded::{self, Hops};

use super::throttle::Throttle;

/// Rate limit for the warning about ignored headers, which any client can trigger.
static WARNINGS: Throttle = Throttle::every(Duration::from_secs(60));

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the client's address; see [`forwarded::client_ip`].
pub fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    if trusted.is_empty() {
        // Without trusted proxies the headers are client input and must be ignored.
        return peer.to_canonical();
    }
    let (forwarded, x_forwarded_for) = (lines(headers, FORWARDED), lines(headers, X_FORWARDED_FOR));
    let hops = Hops { forwarded: &forwarded, x_forwarded_for: &x_forwarded_for };
    forwarded::client_ip(peer, hops, trusted)
}

/// Warns about forwarding headers from an untrusted peer. Either a proxy is missing in the
/// configuration, so that all its clients share one rate limit, or a client tries to spoof its
/// address.
pub fn warn_of_untrusted(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) {
    if has_untrusted(peer, headers, trusted)
        && let Some(requests) = WARNINGS.pass(Instant::now())
    {
        tracing::warn!(
            %peer, requests,
            "ignored Forwarded or X-Forwarded-For: the peer is not in trusted-proxies. If it is your proxy, add it"
        );
    }
}

fn has_untrusted(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> bool {
    let peer = peer.to_canonical();
    (headers.contains_key(FORWARDED) || headers.contains_key(X_FORWARDED_FOR))
        && !trusted.iter().any(|range| range.contains(&peer))
}

/// Returns the header's lines. An unreadable line becomes an invalid hop instead of being skipped,
/// because a skipped hop would shift the trusted ones.
fn lines(headers: &HeaderMap, name: HeaderName) -> Vec<&str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("unreadable")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn every_forwarding_header_line_is_read_and_an_unreadable_one_hides_its_hop() {
        let name = X_FORWARDED_FOR;
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        headers.append(name.clone(), HeaderValue::from_static("203.0.113.9"));
        headers.append(name.clone(), HeaderValue::from_static("198.51.100.7"));
        let peer = "10.0.0.1".parse().unwrap();
        assert_eq!(client_ip(peer, &headers, &trusted).to_string(), "198.51.100.7");
        headers.append(name, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(client_ip(peer, &headers, &trusted), peer);
    }

    #[test]
    fn forwarding_headers_are_untrusted_unless_a_trusted_proxy_sends_them() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let header = |name| HeaderMap::from_iter([(name, HeaderValue::from_static("203.0.113.9"))]);
        for name in [X_FORWARDED_FOR, FORWARDED] {
            for (peer, untrusted) in [("192.0.2.1", true), ("10.0.0.1", false), ("::ffff:10.0.0.1", false)] {
                assert_eq!(has_untrusted(peer.parse().unwrap(), &header(name.clone()), &trusted), untrusted);
            }
        }
        assert!(!has_untrusted("192.0.2.1".parse().unwrap(), &HeaderMap::new(), &trusted));
    }
}
