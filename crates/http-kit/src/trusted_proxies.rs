//! The peers whose forwarding headers are trusted.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use parking_lot::RwLock;

/// A list of networks. Clones share it, and it can be replaced while the service runs.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<RwLock<Arc<[IpNet]>>>);

impl TrustedProxies {
    pub fn replace(&self, networks: Vec<IpNet>) {
        *self.0.write() = networks.into();
    }

    /// Returns the list as it is now.
    pub fn networks(&self) -> Arc<[IpNet]> {
        Arc::clone(&self.0.read())
    }

    pub(super) fn contains(&self, ip: IpAddr) -> bool {
        self.0.read().iter().any(|network| network.contains(&ip))
    }
}

impl From<Vec<IpNet>> for TrustedProxies {
    fn from(networks: Vec<IpNet>) -> Self {
        Self(Arc::new(RwLock::new(networks.into())))
    }
}
