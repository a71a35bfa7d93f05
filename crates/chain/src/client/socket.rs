//! A transport to a node behind a Unix socket, like the IPC endpoints of other nodes. One line is a
//! JSON-RPC request or batch, and one line is its response.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alloy::providers::{DynProvider, Provider, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::{TransportError, TransportErrorKind, TransportFut};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tower::Service;

use super::chain::http_provider;
use crate::error::ChainError;

/// The URL scheme of a socket; the path follows.
const SCHEME: &str = "unix:";
/// The maximum time for connecting, sending and receiving together.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of a response, in bytes.
const MAX_ANSWER: u64 = 256 << 20;

pub fn socket_url(path: &std::path::Path) -> String {
    format!("{SCHEME}{}", path.display())
}

pub fn is_socket_url(url: &str) -> bool {
    url.starts_with(SCHEME)
}

/// Creates a provider for an HTTP URL, or for the Unix socket of a `unix:` URL. Does not connect
/// yet.
///
/// # Errors
///
/// As for [`http_provider`].
pub fn provider(url: &str) -> Result<DynProvider, ChainError> {
    let Some(path) = url.strip_prefix(SCHEME) else { return http_provider(url) };
    let rpc = RpcClient::new(Socket { path: Arc::new(PathBuf::from(path)) }, true);
    Ok(ProviderBuilder::default().connect_client(rpc).erased())
}

/// Opens a new connection for each request.
#[derive(Debug, Clone)]
struct Socket {
    path: Arc<PathBuf>,
}

impl Socket {
    async fn ask(&self, line: &str) -> io::Result<String> {
        let mut stream = UnixStream::connect(self.path.as_path()).await?;
        stream.write_all(line.as_bytes()).await?;
        stream.write_all(b"\n").await?;
        let mut answer = String::new();
        // A longer response is cut off here and then fails to parse.
        BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut answer).await?;
        Ok(answer)
    }

    async fn request(self, packet: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let line = serde_json::to_string(&packet).map_err(TransportError::ser_err)?;
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.ask(&line)).await;
        let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let answer = answer.map_err(TransportErrorKind::custom)?;
        serde_json::from_str(&answer).map_err(|error| TransportError::deser_err(error, answer))
    }
}

impl Service<RequestPacket> for Socket {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> TransportFut<'static> {
        Box::pin(self.clone().request(packet))
    }
}
