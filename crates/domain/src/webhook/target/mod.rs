//! Where webhooks may be posted to. Whoever holds a key names a URL that this service then calls from inside its own
//! network, so a URL is judged when it is set and again whenever it is called: by [`Target::parse`] as far as its text
//! goes, and by [`TargetPolicy::admits`] for each address that its name turns out to have.
//!
//! The text is never judged as text. `2130706433`, `0x7f.1` and `１２７.0.0.1` are all 127.0.0.1; a parser that follows
//! the rules of browsers says so, and the address that it found is what is judged.

mod network;
mod port;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Url;

use network::{Reach, reach};

/// How long a target's URL may be, in bytes.
pub const MAX_LENGTH: usize = 2_048;

/// Endings of names that only exist inside of a network, whatever address they have there.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "home.arpa",
    "corp",
    "private",
    "svc",
];

/// What a development machine has to offer: itself and its private networks.
const DEVELOPMENT_NETWORKS: [IpNet; 6] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(172, 16, 0, 0), 12)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 0, 0), 16)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)),
];

/// Whether the address belongs to the public internet.
pub fn is_public(ip: IpAddr) -> bool {
    reach(ip) == Reach::Public
}

/// What may be a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPolicy {
    /// Whether plain http, local names and low ports will do.
    insecure: bool,
    /// Networks beside the public internet that may be called.
    admitted: Vec<IpNet>,
}

impl TargetPolicy {
    /// https to the public internet.
    pub const fn public() -> Self {
        Self { insecure: false, admitted: Vec::new() }
    }

    /// Also http, to this machine and its private networks. Never for a service that others use.
    pub fn development() -> Self {
        Self { insecure: true, admitted: DEVELOPMENT_NETWORKS.to_vec() }
    }

    /// The same, with one more network that may be called. Metadata, link-local and multicast addresses, and those that
    /// hide an IPv4 address, are refused all the same.
    #[must_use]
    pub fn admitting(mut self, network: IpNet) -> Self {
        self.admitted.push(network);
        self
    }

    /// Whether a connection may be made to this address.
    pub fn admits(&self, ip: IpAddr) -> bool {
        match reach(ip) {
            Reach::Public => true,
            Reach::Local => self.admitted.iter().any(|network| network.contains(&ip)),
            Reach::Never => false,
        }
    }
}

/// Why a URL is no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetRefusal {
    /// Longer than [`MAX_LENGTH`].
    #[error("must be at most {MAX_LENGTH} bytes long")]
    TooLong,
    /// Not an absolute URL, or one that has to be guessed at.
    #[error("must be an absolute URL with a host")]
    Malformed,
    /// Another scheme than the policy's.
    #[error("must begin with https://")]
    Scheme,
    /// A user name or password.
    #[error("must not hold a user name or password")]
    UserInfo,
    /// A fragment, which is never sent.
    #[error("must not have a fragment")]
    Fragment,
    /// A port that is not for receivers.
    #[error(
        "must have port 443 or one from 1024 on that is not one of a database, mail or another protocol than HTTP"
    )]
    Port,
    /// A name that no public name server knows, or no name at all.
    #[error("must name a public host")]
    Name,
    /// An address outside of what the policy admits.
    #[error("must have a public address")]
    Address,
}

/// The host of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    /// A name: in lower case, internationalised names in their ASCII form, without a dot at the end.
    Name(String),
    /// An address, however it was written.
    Address(IpAddr),
}

/// A URL that the policy it was parsed under lets be called, as far as can be told without asking a name server.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: TargetHost,
    port: u16,
    origin: String,
}

impl Target {
    /// Reads a URL and judges everything about it that its text says.
    pub fn parse(text: &str, policy: &TargetPolicy) -> Result<Self, TargetRefusal> {
        let mut url = read(text)?;
        let scheme_is_fit = url.scheme() == "https" || (policy.insecure && url.scheme() == "http");
        if !scheme_is_fit {
            return Err(TargetRefusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetRefusal::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(TargetRefusal::Fragment);
        }
        let host = match url.host().ok_or(TargetRefusal::Malformed)? {
            url::Host::Domain(name) => TargetHost::Name(judged_name(name, policy)?),
            url::Host::Ipv4(ip) => TargetHost::Address(judged_address(ip.into(), policy)?),
            url::Host::Ipv6(ip) => TargetHost::Address(judged_address(ip.into(), policy)?),
        };
        if let TargetHost::Name(name) = &host {
            url.set_host(Some(name)).map_err(|_| TargetRefusal::Name)?;
        }
        let port = url.port_or_known_default().ok_or(TargetRefusal::Port)?;
        let is_fit = port == 443 || (port >= 1_024 && !port::is_blocked(port));
        if port == 0 || !(policy.insecure || is_fit) {
            return Err(TargetRefusal::Port);
        }
        let origin = format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or_default());
        Ok(Self { url, host, port, origin })
    }

    /// The URL in its normal form: what is stored and shown to its owner.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Whether TLS is spoken.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host.
    pub const fn host(&self) -> &TargetHost {
        &self.host
    }

    /// The port, the scheme's own one where the URL names none.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Scheme, host and port: what targets that can share a connection have in common.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Host and port as the header `Host` has them.
    pub fn authority(&self) -> &str {
        self.url.authority()
    }

    /// Path and query as the request's first line has them.
    pub fn path_and_query(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }
}

/// Paths and queries of webhooks are often secrets, so that a log line shows the origin alone.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.origin).finish()
    }
}

/// Parses what is written as a URL. The parser mends what browsers mend (blanks, line ends, backslashes, missing or
/// surplus slashes); a URL that needs mending means something else to somebody and is refused.
fn read(text: &str) -> Result<Url, TargetRefusal> {
    if text.len() > MAX_LENGTH {
        return Err(TargetRefusal::TooLong);
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(TargetRefusal::Malformed);
    }
    let (_, rest) = text.split_once("://").ok_or(TargetRefusal::Malformed)?;
    if rest.is_empty() || rest.starts_with('/') {
        return Err(TargetRefusal::Malformed);
    }
    let url = Url::parse(text).map_err(|_| TargetRefusal::Malformed)?;
    if url.as_str().len() > MAX_LENGTH { Err(TargetRefusal::TooLong) } else { Ok(url) }
}

fn judged_address(ip: IpAddr, policy: &TargetPolicy) -> Result<IpAddr, TargetRefusal> {
    if policy.admits(ip) { Ok(ip) } else { Err(TargetRefusal::Address) }
}

fn judged_name(name: &str, policy: &TargetPolicy) -> Result<String, TargetRefusal> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let of_names = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        matches!(label.len(), 1..=63) && label.bytes().all(of_names)
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(TargetRefusal::Name);
    }
    let ends_in = |ending: &str| {
        name.strip_suffix(ending).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    if !policy.insecure && (!name.contains('.') || LOCAL_NAMES.iter().any(|ending| ends_in(ending))) {
        return Err(TargetRefusal::Name);
    }
    Ok(name.to_owned())
}
