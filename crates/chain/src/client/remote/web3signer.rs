//! A client of web3signer's REST API for Ethereum keys: `GET /api/v1/eth1/publicKeys` lists the keys,
//! and `POST /api/v1/eth1/sign/{key}` signs the Keccak-256 hash of the given bytes.

use std::time::Duration;

use alloy::transports::http::reqwest::{self, Method, Url, redirect};
use alloy_primitives::{Address, B256, Signature};
use futures::future::BoxFuture;
use serde_json::json;

use crate::client::lane_signer::RemoteKey;
use crate::error::ChainError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum time of a request. It must be well below the time of a lease.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum length of an answer in bytes: the list has 132 per key.
const MAX_ANSWER: usize = 1 << 20;

/// An executor's key in a web3signer server.
pub struct Web3signer {
    http: reqwest::Client,
    /// The server's URL. Ends with a slash.
    base: Url,
    executor: Address,
}

impl Web3signer {
    /// Creates a client for the key of `executor`. Does not connect yet.
    ///
    /// # Errors
    ///
    /// `Rejected` if `url` is not an HTTP URL, or contains a user name or a password.
    pub fn new(url: &str, executor: Address) -> Result<Self, ChainError> {
        let rejected = |why: &str| ChainError::Rejected(format!("the signer's URL {why}"));
        let mut base = Url::parse(url).map_err(|_| rejected("is not a URL"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(rejected("must begin with http:// or https://"));
        }
        // It is stored and shown, so it must not be a secret.
        if !base.username().is_empty() || base.password().is_some() || base.query().is_some() {
            return Err(rejected("must not contain a user name, a password or a query"));
        }
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(redirect::Policy::none())
            // Transactions go to the signer and to no proxy that the environment names.
            .no_proxy()
            .build()
            .map_err(|error| ChainError::Rejected(error.without_url().to_string()))?;
        Ok(Self { http, base, executor })
    }

    /// Returns the server's name of the executor's key: its public key in hex.
    async fn find_key(&self) -> Result<String, String> {
        let listed = self.ask(Method::GET, "api/v1/eth1/publicKeys", None).await?;
        let listed: Vec<String> =
            serde_json::from_slice(&listed).map_err(|_| "its list of keys is not readable".to_owned())?;
        let is_own = |key: &String| address_of(key) == Some(self.executor);
        listed.into_iter().find(is_own).ok_or_else(|| "it does not have the executor's key".to_owned())
    }

    async fn sign_bytes(&self, unsigned: &[u8]) -> Result<Signature, String> {
        // Looked up for each batch: the operator may have given the key to the server just now.
        let key = self.find_key().await?;
        let body = json!({ "data": format!("0x{}", hex::encode(unsigned)) }).to_string();
        let answer = self.ask(Method::POST, &format!("api/v1/eth1/sign/{key}"), Some(body)).await?;
        let signature = std::str::from_utf8(&answer).ok().and_then(|text| {
            let text = text.trim().trim_matches('"');
            hex::decode(text.strip_prefix("0x").unwrap_or(text)).ok()
        });
        let signature = signature.and_then(|bytes| Signature::from_raw(&bytes).ok());
        signature.ok_or_else(|| "its answer is not a signature".to_owned())
    }

    /// Sends a request and reads its answer. No error contains the answer, which may be anything.
    async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Result<Vec<u8>, String> {
        let url = self.base.join(path).map_err(|error| error.to_string())?;
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let broken = |error: reqwest::Error| match error.is_timeout() {
            true => format!("no answer within {} s", TIMEOUT.as_secs()),
            false => error.without_url().to_string(),
        };
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("it answered HTTP status {}", status.as_u16()));
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            // Checked for each chunk, because an answer may omit its length.
            if answer.len() + chunk.len() > MAX_ANSWER {
                return Err("its answer is longer than 1 MiB".to_owned());
            }
            answer.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

impl RemoteKey for Web3signer {
    fn sign<'a>(&'a self, unsigned: &'a [u8], _hash: B256) -> BoxFuture<'a, Result<Signature, String>> {
        Box::pin(self.sign_bytes(unsigned))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.find_key().await.map(drop) })
    }
}

/// Returns the address of an uncompressed public key in hex, with or without its first byte 4.
fn address_of(key: &str) -> Option<Address> {
    // The text becomes a part of a URL.
    let digits = key.strip_prefix("0x").unwrap_or(key);
    let bytes = hex::decode(digits).ok()?;
    let bytes = match bytes.len() {
        65 => bytes.strip_prefix(&[4])?,
        _ => &bytes[..],
    };
    (bytes.len() == 64).then(|| Address::from_raw_public_key(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy::signers::local::PrivateKeySigner;

    #[test]
    fn a_key_is_found_by_its_address() {
        let key = PrivateKeySigner::from_slice(&[7; 32]).unwrap();
        let public = hex::encode(key.public_key());
        for text in [public.clone(), format!("0x{public}"), format!("0x04{public}")] {
            assert_eq!(address_of(&text), Some(key.address()));
        }
        for text in ["", "0x", "0x04", "../../upcheck", &public[2..]] {
            assert_eq!(address_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_signers_url_contains_no_secret() {
        let new = |url| Web3signer::new(url, Address::ZERO);
        assert!(new("http://signer:9000").is_ok() && new("https://signer/a/b").is_ok());
        for url in ["signer", "ftp://signer", "https://dara:s3cret@signer", "https://signer?key=s3cret"] {
            let error = new(url).err().unwrap().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
