//! Resolves host names.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use futures::future::BoxFuture;

/// A source of the addresses of host names.
pub trait Resolver: Send + Sync + 'static {
    /// Returns all addresses of the name, from a single lookup. May take any time.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver. A lookup occupies a thread until it has ended.
#[derive(Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let lookup = tokio::task::spawn_blocking(move || {
                Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
