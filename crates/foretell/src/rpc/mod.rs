//! The embedded chain's JSON-RPC. It is served over HTTP on a separate listener, for tools and
//! wallets, and over a Unix socket in the data folder, for the operator's commands. The public
//! listener never serves it.

mod executor;
mod http;
mod socket;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use embedded_chain::{Access, EmbeddedNode};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::private_hosts::PrivateHosts;
use crate::start_error::StartError;
use executor::RequestExecutor;

pub use crate::optional_listen::OptionalListen;

/// The running JSON-RPC endpoints of an embedded chain.
pub struct RpcServer {
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The endpoints, bound but not yet serving.
pub struct RpcEndpoints {
    http: Option<(TcpListener, SocketAddr)>,
    socket: Option<UnixListener>,
    socket_url: String,
}

impl RpcEndpoints {
    /// Binds the socket in `data_dir`, and an HTTP listener if `listen` is an address.
    pub fn bind(data_dir: &Path, listen: OptionalListen) -> Result<Self, StartError> {
        let http = match listen {
            OptionalListen::Off => None,
            OptionalListen::At(address) => Some(crate::run::listen(address)?),
        };
        let (socket, socket_url) = socket::bind(data_dir)?;
        Ok(Self { http, socket, socket_url })
    }

    /// Returns the URL of the HTTP endpoint, if it is enabled.
    pub fn http_url(&self) -> Option<String> {
        self.http.as_ref().map(|(_, address)| format!("http://{address}"))
    }

    pub fn socket_url(&self) -> &str {
        &self.socket_url
    }

    /// Serves `node`, over HTTP only under the names of `hosts`. `test_methods` allows HTTP callers to
    /// mine blocks.
    pub fn serve(self, node: Arc<EmbeddedNode>, test_methods: bool, hosts: PrivateHosts) -> RpcServer {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        if let Some((listener, address)) = self.http {
            // The JSON-RPC has no authentication, so warn about other addresses.
            if !address.ip().is_loopback() {
                tracing::warn!(%address, "the chain's JSON-RPC is reachable from other machines");
            }
            // Only operators on the socket have full access.
            let access = Access { test_methods, ..Access::PUBLIC };
            let executor = Arc::new(RequestExecutor::new(Arc::clone(&node), access));
            tasks.spawn(http::serve(listener, executor, hosts, stop.clone()));
        }
        if let Some(listener) = self.socket {
            tasks.spawn(socket::serve(listener, node, stop.clone()));
        }
        RpcServer { stop, tasks }
    }
}

impl RpcServer {
    /// Stops both endpoints and waits for running requests.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
