//! The JSON-RPC endpoint of one node over HTTP. A response counts only if it is a complete JSON-RPC
//! response to the request. HTML pages, empty or endless bodies, and responses to other requests
//! are transport errors.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::http::reqwest::{self, StatusCode};
use alloy::transports::{TransportError, TransportErrorKind, TransportFut, TransportResult};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::Service;

use super::form::is_answer;
use crate::error::ChainError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum length of a response in bytes.
const MAX_BODY: usize = 32 << 20;
/// The maximum number of connections to a node for clients' requests, and for workers and checks. A
/// request has its connection alone until it is answered, so without a bound a slow node would get a
/// connection for each waiting request.
const MAX_REQUEST_CONNECTIONS: usize = 48;
const MAX_WORKER_CONNECTIONS: usize = 32;
/// The maximum number of connections to a node.
pub const MAX_NODE_CONNECTIONS: usize = MAX_REQUEST_CONNECTIONS + MAX_WORKER_CONNECTIONS;

/// The kind of work for which the node is asked. Clients' requests that wait for a slow node do not
/// keep the workers from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    Requests,
    Workers,
}

#[derive(Clone)]
pub struct NodeEndpoint {
    client: reqwest::Client,
    url: reqwest::Url,
    timeout: Duration,
    for_requests: Arc<Semaphore>,
    for_workers: Arc<Semaphore>,
}

impl std::fmt::Debug for NodeEndpoint {
    /// Prints only the host, because the URL may contain the node's access key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Endpoint").field(&self.host()).finish()
    }
}

impl NodeEndpoint {
    /// Creates an endpoint for `url` with the given timeout per request. Does not connect yet.
    ///
    /// # Errors
    ///
    /// `Rejected` if `url` is not an HTTP URL.
    pub fn new(url: &str, timeout: Duration) -> Result<Self, ChainError> {
        // No message of this file contains the URL, because it may contain the node's access key.
        let url = reqwest::Url::parse(url)
            .map_err(|error| ChainError::Rejected(format!("the node's URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ChainError::Rejected(
                "the node's URL must begin with http:// or https://".to_owned(),
            ));
        }
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(MAX_NODE_CONNECTIONS)
            .build();
        let client = client.map_err(|error| ChainError::Rejected(error.without_url().to_string()))?;
        let for_requests = Arc::new(Semaphore::new(MAX_REQUEST_CONNECTIONS));
        let for_workers = Arc::new(Semaphore::new(MAX_WORKER_CONNECTIONS));
        Ok(Self { client, url, timeout, for_requests, for_workers })
    }

    /// Returns the host and port, which are safe to log.
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Sends a request and reads its response. Waits for a connection if too many are in use.
    ///
    /// # Errors
    ///
    /// Transport errors, and `Custom` if the response does not match the request.
    pub async fn post(self, packet: RequestPacket, by: AskedBy) -> TransportResult<ResponsePacket> {
        let body = Bytes::from(serde_json::to_vec(&packet).map_err(TransportError::ser_err)?);
        let places = match by {
            AskedBy::Requests => &self.for_requests,
            AskedBy::Workers => &self.for_workers,
        };
        // The wait counts, so that the caller gets its answer within the timeout.
        let until = Instant::now() + self.timeout;
        let place = tokio::time::timeout_at(until, places.acquire()).await;
        let Ok(Ok(_place)) = place else {
            return Err(TransportErrorKind::custom_str("too many requests wait for the node"));
        };
        let (status, body) = self.exchange(body, until).await.map_err(broken)?;
        if body.len() > MAX_BODY {
            return Err(TransportErrorKind::custom_str("the answer is longer than 32 MiB"));
        }
        let answer: Option<ResponsePacket> = serde_json::from_slice(&body).ok();
        match answer.filter(|answer| is_answer(&packet, answer)) {
            // Some nodes combine an HTTP error status with a JSON-RPC error.
            Some(answer) if status.is_success() || answer.is_error() => Ok(answer),
            _ if status.is_success() => {
                Err(TransportErrorKind::custom_str("the answer is not a JSON-RPC answer to the request"))
            }
            _ => Err(TransportErrorKind::custom_str(&format!("the node answered HTTP status {status}"))),
        }
    }

    /// Sends a body, once more on another connection if the first one failed before an answer. That is
    /// safe: reads change nothing, and a node executes the same signed transaction only once.
    async fn exchange(&self, body: Bytes, until: Instant) -> reqwest::Result<(StatusCode, Vec<u8>)> {
        let send = || {
            let left = until.saturating_duration_since(Instant::now());
            let request = self.client.post(self.url.clone()).timeout(left);
            request.header("content-type", "application/json").body(body.clone()).send()
        };
        let response = match send().await {
            Err(error) if !error.is_timeout() => send().await?,
            done => done?,
        };
        let status = response.status();
        Ok((status, read(response).await?))
    }
}

/// Reads a body up to its maximum length, and one chunk more if it is longer.
async fn read(mut response: reqwest::Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    // Checked for each chunk, because a response may omit its length.
    while body.len() <= MAX_BODY
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn broken(error: reqwest::Error) -> TransportError {
    TransportErrorKind::custom(error.without_url())
}

impl Service<RequestPacket> for NodeEndpoint {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> TransportFut<'static> {
        Box::pin(self.clone().post(packet, AskedBy::Workers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy::rpc::json_rpc::{Id, Request};
    use futures::future::join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::watch;

    /// A node that closes its first connections at once, and answers on the others when it may.
    struct SlowNode {
        url: String,
        connections: Arc<AtomicUsize>,
        may_answer: watch::Sender<bool>,
    }

    impl SlowNode {
        async fn start(closed: usize) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let connections = Arc::<AtomicUsize>::default();
            let (may_answer, allowed) = watch::channel(false);
            let count = Arc::clone(&connections);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    if count.fetch_add(1, Ordering::Relaxed) >= closed {
                        tokio::spawn(answer(stream, allowed.clone()));
                    }
                }
            });
            Self { url, connections, may_answer }
        }

        fn connections(&self) -> usize {
            self.connections.load(Ordering::Relaxed)
        }
    }

    async fn answer(mut stream: TcpStream, mut allowed: watch::Receiver<bool>) {
        let mut read = [0; 4_096];
        while let Ok(1..) = stream.read(&mut read).await {
            allowed.wait_for(|allowed| *allowed).await.unwrap();
            let body = r#"{"jsonrpc":"2.0","id":1,"result":"0x7a69"}"#;
            let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    }

    fn chain_id() -> RequestPacket {
        let request = Request::new("eth_chainId", Id::Number(1), Vec::<u8>::new());
        RequestPacket::Single(request.serialize().unwrap())
    }

    #[tokio::test]
    async fn requests_to_a_slow_node_share_a_bounded_number_of_connections() {
        let node = SlowNode::start(0).await;
        let endpoint = NodeEndpoint::new(&node.url, REQUEST).unwrap();
        let ask = |by| endpoint.clone().post(chain_id(), by);
        let asked = join_all((0..300).map(|_| ask(AskedBy::Requests)));
        let work = async {
            while node.connections() < MAX_REQUEST_CONNECTIONS {
                tokio::task::yield_now().await;
            }
            // Workers do not wait behind the requests.
            let working = ask(AskedBy::Workers);
            let release = async {
                while node.connections() <= MAX_REQUEST_CONNECTIONS {
                    tokio::task::yield_now().await;
                }
                node.may_answer.send_replace(true);
            };
            tokio::join!(working, release).0.unwrap();
        };
        let (answers, ()) = tokio::join!(asked, work);
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(node.connections(), MAX_REQUEST_CONNECTIONS + 1);
    }

    #[tokio::test]
    async fn a_request_whose_connection_fails_is_sent_on_another_one() {
        let node = SlowNode::start(1).await;
        node.may_answer.send_replace(true);
        let endpoint = NodeEndpoint::new(&node.url, REQUEST).unwrap();
        endpoint.clone().post(chain_id(), AskedBy::Requests).await.unwrap();
        assert_eq!(node.connections(), 2);
        let gone = NodeEndpoint::new(&SlowNode::start(9).await.url, REQUEST).unwrap();
        gone.post(chain_id(), AskedBy::Requests).await.unwrap_err();
    }

    const REQUEST: Duration = Duration::from_secs(10);
}
