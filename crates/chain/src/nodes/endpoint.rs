//! The JSON-RPC endpoint of one node over HTTP. A response counts only if it is a complete JSON-RPC
//! response to the request. HTML pages, empty or endless bodies, and responses to other requests
//! are transport errors.

use std::task::{Context, Poll};
use std::time::Duration;

use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::http::reqwest;
use alloy::transports::{TransportError, TransportErrorKind, TransportFut, TransportResult};
use tower::Service;

use super::form::is_answer;
use crate::error::ChainError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum length of a response in bytes.
const MAX_BODY: usize = 32 << 20;

#[derive(Clone)]
pub struct NodeEndpoint {
    client: reqwest::Client,
    url: reqwest::Url,
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
        let client = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).timeout(timeout).build();
        let client = client.map_err(|error| ChainError::Rejected(error.without_url().to_string()))?;
        Ok(Self { client, url })
    }

    /// Returns the host and port, which are safe to log.
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Sends a request and reads its response.
    ///
    /// # Errors
    ///
    /// Transport errors, and `Custom` if the response does not match the request.
    pub async fn post(self, packet: RequestPacket) -> TransportResult<ResponsePacket> {
        let body = serde_json::to_vec(&packet).map_err(TransportError::ser_err)?;
        let request = self.client.post(self.url).header("content-type", "application/json").body(body);
        let response = request.send().await.map_err(broken)?;
        let status = response.status();
        let body = read(response).await?;
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
}

async fn read(mut response: reqwest::Response) -> TransportResult<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        // Checked for each chunk, because a response may omit its length.
        if body.len() + chunk.len() > MAX_BODY {
            return Err(TransportErrorKind::custom_str("the answer is longer than 32 MiB"));
        }
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
        Box::pin(self.clone().post(packet))
    }
}
