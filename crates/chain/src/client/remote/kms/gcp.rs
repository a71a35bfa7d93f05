//! GCP KMS: its REST API, with a token of this machine's service account.

use alloy_primitives::{Address, B256, Signature};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use reqsign_core::{Context, Env, Error, OsEnv, ProvideCredential, Result as CredentialResult};
use reqsign_google::{
    Credential, EnvCredentialProvider, RequestSigner, ServiceAccountTokenCredentialProvider,
    VmMetadataCredentialProvider, WellKnownCredentialProvider,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::credentials::{CredentialSources, context};
use super::encoding::{address_of_pem, base64_of, bytes_of, signature_of_der};
use super::session::CloudSession;
use crate::client::lane_signer::RemoteKey;
use crate::client::remote::http::SignerHttp;
use crate::error::ChainError;

/// The only endpoint: a setting of the database must not choose where the token is sent.
const ENDPOINT: &str = "https://cloudkms.googleapis.com";
const SCOPE: &str = "https://www.googleapis.com/auth/cloudkms";
/// The parts of the name of a key's version that are not names.
const COLLECTIONS: [&str; 5] = ["projects", "locations", "keyRings", "cryptoKeys", "cryptoKeyVersions"];

/// A version of a key in GCP KMS: EC_SIGN_SECP256K1_SHA256.
#[derive(Debug)]
pub struct GcpKey {
    session: CloudSession<Credential>,
    endpoint: String,
    /// `projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V`
    version: String,
}

#[derive(Deserialize)]
struct PublicKeyAnswer {
    pem: String,
}

#[derive(Deserialize)]
struct SignAnswer {
    signature: String,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: ErrorStatus,
}

#[derive(Deserialize)]
struct ErrorStatus {
    status: String,
}

impl GcpKey {
    /// Opens the key with the credentials of this machine. Does not connect yet.
    pub fn new(version: &str) -> Result<Self, ChainError> {
        Self::open(version, ENDPOINT, OsEnv)
    }

    pub(super) fn open(version: &str, endpoint: &str, env: impl Env) -> Result<Self, ChainError> {
        check_version(version)?;
        let http = SignerHttp::new()?;
        let context = context(&http, env);
        let signer = RequestSigner::new("cloudkms").with_scope(SCOPE);
        let session = CloudSession::new(http, context, Tokens::default(), signer, error_name);
        Ok(Self { session, endpoint: endpoint.to_owned(), version: version.to_owned() })
    }

    #[cfg(test)]
    pub(super) fn set_timeout(&mut self, timeout: std::time::Duration) {
        self.session.set_timeout(timeout);
    }

    async fn find_address(&self) -> Result<Address, String> {
        let answer: PublicKeyAnswer = self.ask(Method::GET, "/publicKey", None).await?;
        address_of_pem(&answer.pem)
    }

    async fn sign_digest(&self, digest: B256) -> Result<Signature, String> {
        // Any 32 bytes: the service does not know by which function they were hashed.
        let request = json!({ "digest": { "sha256": base64_of(digest) } });
        let answer: SignAnswer = self.ask(Method::POST, ":asymmetricSign", Some(request)).await?;
        signature_of_der(&bytes_of(&answer.signature)?)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        action: &str,
        body: Option<Value>,
    ) -> Result<T, String> {
        let Self { endpoint, version, .. } = self;
        let mut request = Request::builder().method(method).uri(format!("{endpoint}/v1/{version}{action}"));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = request.body(Bytes::from(body)).map_err(|error| error.to_string())?;
        self.session.ask(request).await
    }
}

impl RemoteKey for GcpKey {
    fn sign<'a>(&'a self, _unsigned: &'a [u8], hash: B256) -> BoxFuture<'a, Result<Signature, String>> {
        Box::pin(self.sign_digest(hash))
    }

    fn address(&self) -> BoxFuture<'_, Result<Address, String>> {
        Box::pin(self.find_address())
    }
}

/// Google's default sources in their order, with a token instead of the key of a service account, so
/// that a token is requested once an hour and not for each request.
#[derive(Debug)]
struct Tokens(CredentialSources<Credential>);

impl Default for Tokens {
    fn default() -> Self {
        let sources = CredentialSources::new()
            .with("GOOGLE_APPLICATION_CREDENTIALS", EnvCredentialProvider::new().with_scope(SCOPE))
            .with("the file of gcloud", WellKnownCredentialProvider::new().with_scope(SCOPE))
            .with("metadata server", VmMetadataCredentialProvider::new().with_scope(SCOPE));
        Self(sources)
    }
}

impl ProvideCredential for Tokens {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> CredentialResult<Option<Credential>> {
        let found = self.0.provide_credential(context).await?;
        let Some(account) = found.as_ref().and_then(|found| found.service_account.clone()) else {
            return Ok(found);
        };
        let tokens = ServiceAccountTokenCredentialProvider::new(account).with_scope(SCOPE);
        // The text of the error may quote an answer.
        let no_token = |error: Error| {
            Error::credential_invalid(format!("no token for the service account: {}", error.kind()))
        };
        tokens.provide_credential(context).await.map_err(no_token)
    }
}

fn check_version(version: &str) -> Result<(), ChainError> {
    let parts: Vec<_> = version.split('/').collect();
    let is_name = |name: &str| {
        // It becomes a part of a URL.
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        !name.is_empty() && name.len() <= 100 && name != "." && name != ".." && name.bytes().all(is_part)
    };
    let pairs: Vec<_> = parts.chunks(2).collect();
    let is_version = pairs.len() == COLLECTIONS.len()
        && pairs.iter().zip(COLLECTIONS).all(|(pair, collection)| match pair {
            [kind, name] => *kind == collection && is_name(name),
            _ => false,
        });
    is_version.then_some(()).ok_or_else(|| {
        ChainError::Rejected(
            "the key must be the name of a version in GCP KMS: \
             projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V"
                .to_owned(),
        )
    })
}

/// Returns the name of an error, such as `PERMISSION_DENIED`.
fn error_name(answer: &[u8]) -> Option<String> {
    serde_json::from_slice::<ErrorAnswer>(answer).ok().map(|answer| answer.error.status)
}
