//! Restricts the URLs to which webhooks are sent. The owner of a key chooses the URL, and this
//! service calls it from inside its own network. [`Target::parse`] therefore checks the text of a
//! URL when it is set and before each call. [`TargetPolicy::admits`] checks each address to which
//! its name resolves.
//!
//! Checks never compare the text of a host. `2130706433`, `0x7f.1` and `１２７.0.0.1` are all
//! 127.0.0.1. The URL is parsed by the rules of browsers, and the resulting address is checked.

mod network;
mod port;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Url;

use network::{Reach, reach};

/// The maximum length of a target's URL, in bytes.
pub const MAX_LENGTH: usize = 2_048;

/// Suffixes of names that exist only inside a network, whatever their address.
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

/// The local networks that a development machine may call: itself and private networks.
const DEVELOPMENT_NETWORKS: [IpNet; 6] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(172, 16, 0, 0), 12)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 0, 0), 16)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)),
];

/// Returns true if the address belongs to the public internet.
pub fn is_public(ip: IpAddr) -> bool {
    reach(ip) == Reach::Public
}

/// The rules for allowed targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPolicy {
    /// True if plain HTTP, local names and low ports are allowed.
    insecure: bool,
    /// Allowed networks in addition to the public internet.
    admitted: Vec<IpNet>,
}

impl TargetPolicy {
    /// Allows only HTTPS to the public internet.
    pub const fn public() -> Self {
        Self { insecure: false, admitted: Vec::new() }
    }

    /// Also allows HTTP, this machine and its private networks. Never use it for a service with
    /// other users.
    pub fn development() -> Self {
        Self { insecure: true, admitted: DEVELOPMENT_NETWORKS.to_vec() }
    }

    /// Additionally allows a network. Metadata, link-local and multicast addresses stay forbidden,
    /// as do addresses that embed an IPv4 address.
    #[must_use]
    pub fn admitting(mut self, network: IpNet) -> Self {
        self.admitted.push(network);
        self
    }

    /// Returns true if connections to this address are allowed.
    pub fn admits(&self, ip: IpAddr) -> bool {
        match reach(ip) {
            Reach::Public => true,
            Reach::Local => self.admitted.iter().any(|network| network.contains(&ip)),
            Reach::Never => false,
        }
    }
}

/// The reason why a URL is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetRefusal {
    /// Longer than [`MAX_LENGTH`].
    #[error("must be at most {MAX_LENGTH} bytes long")]
    TooLong,
    /// Not an absolute URL, or one that a parser would have to correct.
    #[error("must be an absolute URL with a host")]
    Malformed,
    /// A scheme that the policy does not allow.
    #[error("must begin with https://")]
    Scheme,
    /// Contains a user name or password.
    #[error("must not contain a user name or password")]
    UserInfo,
    /// Contains a fragment, which HTTP never sends.
    #[error("must not have a fragment")]
    Fragment,
    /// A port of another protocol.
    #[error(
        "must have port 443, or a port from 1024 on that is not the usual port of another protocol such as a database or mail"
    )]
    Port,
    /// A name without a public DNS entry, or not a name at all.
    #[error("must name a public host")]
    Name,
    /// An address that the policy does not allow.
    #[error("must have a public address")]
    Address,
}

/// The host of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    /// A name in lower case, without a final dot. Internationalized names are in their ASCII form.
    Name(String),
    /// An IP address, however it was written.
    Address(IpAddr),
}

/// A URL that its policy allows, as far as that can be determined without DNS.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: TargetHost,
    port: u16,
    origin: String,
}

impl Target {
    /// Parses a URL and checks it against the policy, without DNS.
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
            url::Host::Domain(name) => TargetHost::Name(checked_name(name, policy)?),
            url::Host::Ipv4(ip) => TargetHost::Address(checked_address(ip.into(), policy)?),
            url::Host::Ipv6(ip) => TargetHost::Address(checked_address(ip.into(), policy)?),
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

    /// Returns the normalized URL. This form is stored and shown to the key's owner.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub const fn host(&self) -> &TargetHost {
        &self.host
    }

    /// Returns the port, or the scheme's default if the URL has none.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns scheme, host and port. Targets with the same origin can share a connection.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns host and port in the form of the `Host` header.
    pub fn authority(&self) -> &str {
        self.url.authority()
    }

    /// Returns path and query in the form of the request line.
    pub fn path_and_query(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }
}

/// Prints only the origin, because the path and query of a webhook often are secrets.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.origin).finish()
    }
}

/// Parses a URL that needs no correction. The parser corrects blanks, line ends, backslashes, and
/// missing or surplus slashes like browsers do. Another program may interpret such a URL
/// differently, so it is rejected.
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
    // Normalizing can lengthen the URL.
    if url.as_str().len() > MAX_LENGTH { Err(TargetRefusal::TooLong) } else { Ok(url) }
}

fn checked_address(ip: IpAddr, policy: &TargetPolicy) -> Result<IpAddr, TargetRefusal> {
    if policy.admits(ip) { Ok(ip) } else { Err(TargetRefusal::Address) }
}

fn checked_name(name: &str, policy: &TargetPolicy) -> Result<String, TargetRefusal> {
    // A final dot names the same host.
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
