//! Signed requests to the API of a cloud.

use std::time::Duration;

use alloy::transports::http::reqwest;
use bytes::Bytes;
use http::Request;
use reqsign_core::{Context, ProvideCredential, SignRequest, Signer, SigningCredential};
use serde::de::DeserializeOwned;

use crate::client::remote::http::{SignerHttp, TIMEOUT, late};

pub const UNREADABLE: &str = "its answer is not readable";
/// The maximum length of an error's name.
const MAX_NAME: usize = 64;

/// The HTTP client and the credentials of this machine. The credentials are cached until shortly
/// before they expire.
#[derive(Debug)]
pub struct CloudSession<C: SigningCredential> {
    http: SignerHttp,
    credentials: Signer<C>,
    /// The maximum time of a request, with those for its credentials.
    timeout: Duration,
    /// Finds the name of the error in an answer.
    error_name: fn(&[u8]) -> Option<String>,
}

impl<C: SigningCredential> CloudSession<C> {
    pub fn new(
        http: SignerHttp,
        context: Context,
        sources: impl ProvideCredential<Credential = C>,
        signer: impl SignRequest<Credential = C>,
        error_name: fn(&[u8]) -> Option<String>,
    ) -> Self {
        Self { http, credentials: Signer::new(context, sources, signer), timeout: TIMEOUT, error_name }
    }

    #[cfg(test)]
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sends a request and reads the JSON of its answer.
    pub async fn ask<T: DeserializeOwned>(&self, request: Request<Bytes>) -> Result<T, String> {
        let answer = tokio::time::timeout(self.timeout, self.send(request));
        let answer = answer.await.map_err(|_| late(self.timeout))??;
        serde_json::from_slice(&answer).map_err(|_| UNREADABLE.to_owned())
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Bytes, String> {
        let (mut head, body) = request.into_parts();
        self.credentials.sign(&mut head, None).await.map_err(|error| error.to_string())?;
        let request = reqwest::Request::try_from(Request::from_parts(head, body));
        let answer = self.http.send(request.map_err(|error| error.without_url().to_string())?).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer.into_body());
        }
        // Only a name is shown, because an answer may be anything.
        let is_name = |name: &String| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_part)
        };
        let name = (self.error_name)(answer.body()).filter(is_name);
        Err(format!(
            "it answered HTTP status {}{}",
            status.as_u16(),
            name.map(|name| format!(" ({name})")).unwrap_or_default()
        ))
    }
}
