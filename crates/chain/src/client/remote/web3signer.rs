//! A client of web3signer's REST API for Ethereum keys: `GET /api/v1/eth1/publicKeys` lists the keys,
//! and `POST /api/v1/eth1/sign/{key}` signs the Keccak-256 hash of the given bytes.

use alloy::transports::http::reqwest::{Method, Request, Url};
use alloy_primitives::{Address, B256, Signature};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::json;

use super::http::{SignerHttp, parse_signer_url};
use crate::client::lane_signer::RemoteKey;
use crate::error::ChainError;

/// An executor's key in a web3signer server.
pub struct Web3signer {
    http: SignerHttp,
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
        Ok(Self { http: SignerHttp::new()?, base: parse_signer_url(url)?, executor })
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

    async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Result<Bytes, String> {
        let url = self.base.join(path).map_err(|error| error.to_string())?;
        let mut request = Request::new(method, url);
        if let Some(body) = body {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.into());
        }
        let answer = self.http.send(request).await?;
        if !answer.status().is_success() {
            return Err(format!("it answered HTTP status {}", answer.status().as_u16()));
        }
        Ok(answer.into_body())
    }
}

impl RemoteKey for Web3signer {
    fn sign<'a>(&'a self, unsigned: &'a [u8], _hash: B256) -> BoxFuture<'a, Result<Signature, String>> {
        Box::pin(self.sign_bytes(unsigned))
    }

    fn address(&self) -> BoxFuture<'_, Result<Address, String>> {
        Box::pin(async { self.find_key().await.map(|_| self.executor) })
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
