//! Requests to servers that sign.

use std::time::Duration;

use alloy::transports::http::reqwest::{self, Url, redirect};
use bytes::{Bytes, BytesMut};
use http::Response;

use crate::error::ChainError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum time of a request. It must be well below the time of a lease.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum length of an answer in bytes: web3signer's list of keys has 132 per key.
const MAX_ANSWER: usize = 1 << 20;

/// An HTTP client whose requests and answers are limited. No error contains an answer, which may be
/// anything.
#[derive(Debug, Clone)]
pub struct SignerHttp(reqwest::Client);

impl SignerHttp {
    pub fn new() -> Result<Self, ChainError> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(redirect::Policy::none())
            // Transactions go to the signer and to no proxy that the environment names.
            .no_proxy()
            .build();
        client.map(Self).map_err(|error| ChainError::Rejected(error.without_url().to_string()))
    }

    /// Sends a request and reads its answer, whatever its status. Its headers are left out.
    pub async fn send(&self, request: reqwest::Request) -> Result<Response<Bytes>, String> {
        let broken = |error: reqwest::Error| match error.is_timeout() {
            true => late(TIMEOUT),
            false => error.without_url().to_string(),
        };
        let mut received = self.0.execute(request).await.map_err(broken)?;
        let mut answer = BytesMut::new();
        while let Some(chunk) = received.chunk().await.map_err(broken)? {
            // Checked for each chunk, because an answer may omit its length.
            if answer.len() + chunk.len() > MAX_ANSWER {
                return Err("its answer is longer than 1 MiB".to_owned());
            }
            answer.extend_from_slice(&chunk);
        }
        let mut response = Response::new(answer.freeze());
        *response.status_mut() = received.status();
        Ok(response)
    }
}

/// Returns the reason for an answer that did not come in time.
pub fn late(limit: Duration) -> String {
    format!("no answer within {} s", limit.as_secs())
}

/// Reads the URL of a server that signs. It is stored and shown, so it must not be a secret.
pub fn parse_signer_url(text: &str) -> Result<Url, ChainError> {
    let rejected = |why: &str| ChainError::Rejected(format!("the signer's URL {why}"));
    let mut url = Url::parse(text).map_err(|_| rejected("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(rejected("must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(rejected("must not contain a user name, a password or a query"));
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}
