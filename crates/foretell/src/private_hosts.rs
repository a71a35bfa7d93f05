//! The names of the listeners without authentication: the operator's, and the embedded chain's
//! JSON-RPC.
//!
//! A web page that a person on this network opens can reach them under a name of its own, which it
//! lets point to this machine (DNS rebinding), and the browser then lets it read the answers. The
//! `Host` header shows that name. So only names are answered that nobody else can own.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// The kernel's name of this machine. In a container it is the container's.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// Endings of names inside a Kubernetes cluster. No public domain has them.
const OF_CLUSTERS: [&str; 2] = [".svc", ".svc.cluster.local"];

/// The names that these listeners answer to.
#[derive(Debug, Clone, Default)]
pub struct PrivateHosts(Arc<[String]>);

impl PrivateHosts {
    /// Answers to the `configured` names and to the name of this machine, besides those that are
    /// always safe.
    pub fn new(configured: &[String]) -> Self {
        let own = std::fs::read_to_string(HOSTNAME).ok();
        let own = own.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Self(configured.iter().cloned().chain(own).collect())
    }

    /// Returns whether nobody else can own this name. Always safe are addresses, because a page has
    /// the address itself as its origin then; names without a dot, such as `localhost` or the name of
    /// a service in Compose, because no domain is one; and names inside a Kubernetes cluster.
    fn is_allowed(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let is_local = !host.is_empty() && !host.contains('.') || host.ends_with(".localhost");
        is_address
            || is_local
            || OF_CLUSTERS.iter().any(|ending| host.ends_with(ending))
            || self.0.iter().any(|own| own.eq_ignore_ascii_case(&host))
    }

    /// Returns whether the request is for one of the names. A request without any, as old probes send
    /// it, is no browser's.
    fn allow(&self, request: &Request) -> bool {
        let of_line = request.uri().authority().map(|authority| Some(authority.host().to_owned()));
        let of_headers = request.headers().get_all(HOST).iter().map(|host| {
            let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
            host.map(|host| host.host().to_owned())
        });
        of_headers.chain(of_line).all(|host| host.is_some_and(|host| self.is_allowed(&host)))
    }
}

/// Rejects requests for names that may be somebody else's.
pub async fn reject_foreign_hosts(
    State(hosts): State<PrivateHosts>,
    request: Request,
    next: Next,
) -> Response {
    if hosts.allow(&request) {
        return next.run(request).await;
    }
    let error =
        "the Host header must be an address or a name of this machine: set private-hosts to allow others";
    (StatusCode::MISDIRECTED_REQUEST, Json(json!({ "error": error }))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn allows(lines: &[&str], uri: &str) -> bool {
        let hosts = PrivateHosts(Arc::from(["metrics.foretell.example".to_owned()]));
        let mut request = Request::builder().uri(uri);
        for line in lines {
            request = request.header(HOST, *line);
        }
        hosts.allow(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn names_that_nobody_else_can_own_are_answered() {
        for host in [
            "127.0.0.1:9464",
            "10.0.0.7:9464",
            "[::1]:9464",
            "[fd00::7]",
            "localhost:9464",
            "LOCALHOST",
            "app.localhost",
            "foretell:9464",
            "foretell-ops.prod.svc:9464",
            "foretell-ops.prod.svc.cluster.local",
            "metrics.foretell.example:9464",
            "Metrics.Foretell.Example.",
        ] {
            assert!(allows(&[host], "/metrics"), "{host}");
        }
        assert!(allows(&[], "/metrics"), "a probe of HTTP/1.0");
    }

    #[test]
    fn a_name_that_a_stranger_may_own_is_rejected() {
        for host in [
            "attacker.test",
            "attacker.test:9464",
            "127.0.0.1.attacker.test",
            "localhost.attacker.test",
            "metrics.foretell.example.attacker.test",
            "svc.attacker.test",
            "foretell.local",
            "a b",
            "",
        ] {
            assert!(!allows(&[host], "/metrics"), "{host}");
        }
        assert!(!allows(&["127.0.0.1", "attacker.test"], "/metrics"));
        assert!(!allows(&["127.0.0.1"], "http://attacker.test/metrics"));
    }
}
