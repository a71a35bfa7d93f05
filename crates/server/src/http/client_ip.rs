//! The client's address, from the socket and the headers of trusted proxies.

use std::net::IpAddr;

use axum::http::header::FORWARDED;
use axum::http::{HeaderMap, HeaderName};
use domain::forwarded::{self, Hops};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client's address; see [`forwarded::client_ip`].
pub fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    if trusted.is_empty() {
        return peer.to_canonical();
    }
    let (forwarded, x_forwarded_for) = (lines(headers, FORWARDED), lines(headers, X_FORWARDED_FOR));
    let hops = Hops { forwarded: &forwarded, x_forwarded_for: &x_forwarded_for };
    forwarded::client_ip(peer, hops, trusted)
}

/// The header's lines; an unreadable one stands as a hop that cannot be read.
fn lines(headers: &HeaderMap, name: HeaderName) -> Vec<&str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("unreadable")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn every_line_of_a_trusted_proxys_headers_is_read_and_an_unreadable_one_hides_its_hop() {
        let name = HeaderName::from_static("x-forwarded-for");
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        headers.append(name.clone(), HeaderValue::from_static("203.0.113.9"));
        headers.append(name.clone(), HeaderValue::from_static("198.51.100.7"));
        let peer = "10.0.0.1".parse().unwrap();
        assert_eq!(client_ip(peer, &headers, &trusted).to_string(), "198.51.100.7");
        headers.append(name, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(client_ip(peer, &headers, &trusted), peer);
    }
}
