//! Connects to a target. The name is resolved once, every address is checked, and the connection
//! goes to a checked address. A second lookup could return different addresses (DNS rebinding).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use domain::webhook::target::{Target, TargetHost, TargetPolicy};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::Endpoint;
use super::connection::TargetConnection;
use super::lookups::Lookups;
use super::outcome::{NetworkFault, PostOutcome};
use super::unasked::CheckedStream;
use crate::limits::Budgets;

/// The maximum number of addresses to try.
const MAX_TRIED: usize = 6;
/// The time before the next address is tried in parallel.
const HEAD_START: Duration = Duration::from_millis(250);

pub(super) struct Dialer {
    pub policy: TargetPolicy,
    pub lookups: Lookups,
    pub tls: Arc<ClientConfig>,
}

impl Dialer {
    /// Connects on behalf of an endpoint's user, who has a share of the lookups.
    pub async fn dial(
        &self,
        budgets: &Budgets,
        endpoint: Endpoint<'_>,
        target: &Target,
    ) -> Result<TargetConnection, PostOutcome> {
        let addresses = match target.host() {
            TargetHost::Address(ip) => vec![*ip],
            TargetHost::Name(name) => self.lookups.find(budgets, endpoint, name).await,
        };
        let addresses = self.allowed(addresses)?;
        let stream = CheckedStream::new(connect(&addresses, target.port()).await?);
        let check = stream.check();
        if !target.is_https() {
            return TargetConnection::over(stream, check).await;
        }
        let name = match target.host() {
            TargetHost::Address(ip) => ServerName::from(*ip),
            TargetHost::Name(name) => ServerName::try_from(name.clone()).map_err(tls_fault)?,
        };
        let stream =
            TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await.map_err(tls_fault)?;
        TargetConnection::over(stream, check).await
    }

    /// Checks the addresses of a host. One forbidden address rejects all: a name that points to public
    /// and internal addresses at once is an attack.
    fn allowed(&self, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, PostOutcome> {
        if addresses.is_empty() {
            return Err(PostOutcome::Unreachable(NetworkFault::Dns));
        }
        if addresses.iter().all(|ip| self.policy.admits(*ip)) {
            Ok(in_turns(addresses))
        } else {
            Err(PostOutcome::TargetRefused)
        }
    }
}

/// Alternates between IPv4 and IPv6 in the resolver's order, so that the second attempt uses the
/// other family.
fn in_turns(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let first_is_v6 = addresses.first().is_some_and(IpAddr::is_ipv6);
    let (first, other): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|ip| ip.is_ipv6() == first_is_v6);
    let (mut first, mut other) = (first.into_iter(), other.into_iter());
    let mut turns = Vec::new();
    loop {
        let (one, two) = (first.next(), other.next());
        if one.is_none() && two.is_none() {
            return turns;
        }
        turns.extend(one.into_iter().chain(two));
    }
}

/// Connects to the first address that accepts. Each attempt gets a head start before the next one
/// joins it (RFC 8305).
async fn connect(addresses: &[IpAddr], port: u16) -> Result<TcpStream, PostOutcome> {
    let mut untried = addresses.iter().take(MAX_TRIED);
    let mut tries = FuturesUnordered::new();
    loop {
        let next = untried.next();
        if let Some(ip) = next {
            tries.push(TcpStream::connect(SocketAddr::new(*ip, port)));
        }
        let ended = match next {
            Some(_) => timeout(HEAD_START, tries.next()).await.ok(),
            None => Some(tries.next().await),
        };
        match ended {
            Some(Some(Ok(stream))) => {
                // A delivery is a single write, so Nagle's algorithm could only delay it.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Some(Some(Err(error))) => tracing::debug!(%error, "could not connect to a webhook target"),
            Some(None) => return Err(PostOutcome::Unreachable(NetworkFault::Connect)),
            None => {}
        }
    }
}

fn tls_fault(error: impl std::fmt::Display) -> PostOutcome {
    tracing::debug!(%error, "the TLS handshake with a webhook target failed");
    PostOutcome::Unreachable(NetworkFault::Tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_alternate_in_the_order_of_the_resolver() {
        let parsed = |list: &[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        let found = in_turns(parsed(&["2000::1", "2000::2", "2000::3", "9.0.0.1", "9.0.0.2"]));
        assert_eq!(found, parsed(&["2000::1", "9.0.0.1", "2000::2", "9.0.0.2", "2000::3"]));
        assert_eq!(in_turns(parsed(&["9.0.0.1", "2000::1"])), parsed(&["9.0.0.1", "2000::1"]));
    }
}
