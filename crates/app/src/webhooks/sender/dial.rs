//! From a target to a connection: the name is resolved once, every address of it is judged, and the connection is made to
//! an address that was judged. Nobody asks a name server twice, so that nobody can be told something else.

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

use super::connection::Connection;
use super::outcome::{NetworkFault, Outcome};
use super::resolver::Resolver;

/// How many addresses of a name are tried.
const MAX_TRIED: usize = 6;
/// How long an address has the field to itself before the next is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// What is needed to call a target.
pub(super) struct Dialer {
    pub policy: TargetPolicy,
    pub resolver: Arc<dyn Resolver>,
    pub tls: Arc<ClientConfig>,
}

impl Dialer {
    pub async fn dial(&self, target: &Target) -> Result<Connection, Outcome> {
        let addresses = self.judged_addresses(target.host()).await?;
        let stream = connect(&addresses, target.port()).await?;
        if !target.is_https() {
            return Connection::over(stream).await;
        }
        let name = match target.host() {
            TargetHost::Address(ip) => ServerName::from(*ip),
            TargetHost::Name(name) => ServerName::try_from(name.clone()).map_err(tls_fault)?,
        };
        let stream =
            TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await.map_err(tls_fault)?;
        Connection::over(stream).await
    }

    /// Where the host is. One address that may not be called refuses them all: a name that leads outside and inside at
    /// once is an attack.
    async fn judged_addresses(&self, host: &TargetHost) -> Result<Vec<IpAddr>, Outcome> {
        let addresses = match host {
            TargetHost::Address(ip) => vec![*ip],
            TargetHost::Name(name) => self.resolver.resolve(name).await.map_err(|error| {
                tracing::debug!(%error, "the name of a webhook's target does not resolve");
                Outcome::Unreachable(NetworkFault::Dns)
            })?,
        };
        if addresses.is_empty() {
            return Err(Outcome::Unreachable(NetworkFault::Dns));
        }
        if addresses.iter().all(|ip| self.policy.admits(*ip)) {
            Ok(in_turns(addresses))
        } else {
            Err(Outcome::TargetRefused)
        }
    }
}

/// The resolver's order, both families in turns: where one of them leads nowhere, the second try is of the other.
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

/// A connection to whichever address takes one, each with a head start before the next.
async fn connect(addresses: &[IpAddr], port: u16) -> Result<TcpStream, Outcome> {
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
                // A delivery is one write: nothing is gained by waiting for more of it.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Some(Some(Err(error))) => tracing::debug!(%error, "a webhook's target takes no connection"),
            Some(None) => return Err(Outcome::Unreachable(NetworkFault::Connect)),
            None => {}
        }
    }
}

fn tls_fault(error: impl std::fmt::Display) -> Outcome {
    tracing::debug!(%error, "no TLS with a webhook's target");
    Outcome::Unreachable(NetworkFault::Tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_are_tried_in_turns_in_the_order_of_the_resolver() {
        let parsed = |list: &[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        let found = in_turns(parsed(&["2000::1", "2000::2", "2000::3", "9.0.0.1", "9.0.0.2"]));
        assert_eq!(found, parsed(&["2000::1", "9.0.0.1", "2000::2", "9.0.0.2", "2000::3"]));
        assert_eq!(in_turns(parsed(&["9.0.0.1", "2000::1"])), parsed(&["9.0.0.1", "2000::1"]));
    }
}
