//! AWS KMS: its JSON API, with requests signed by Signature Version 4.

use alloy::transports::http::reqwest::Url;
use alloy_primitives::{Address, B256, Signature};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use http::header::CONTENT_TYPE;
use reqsign_aws_v4::{
    AssumeRoleWithWebIdentityCredentialProvider, Credential, ECSCredentialProvider, EnvCredentialProvider,
    IMDSv2CredentialProvider, ProfileCredentialProvider, RequestSigner, SSOCredentialProvider,
};
use reqsign_core::hash::hex_sha256;
use reqsign_core::{Env, OsEnv};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::credentials::{CredentialSources, context};
use super::encoding::{address_of_der, base64_of, bytes_of, signature_of_der};
use super::session::CloudSession;
use crate::client::lane_signer::RemoteKey;
use crate::client::remote::http::{SignerHttp, parse_signer_url};
use crate::error::ChainError;

/// A key in AWS KMS: ECC_SECG_P256K1 with the usage SIGN_VERIFY.
#[derive(Debug)]
pub struct AwsKey {
    session: CloudSession<Credential>,
    endpoint: Url,
    /// An ARN, an id or `alias/NAME`.
    key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PublicKeyAnswer {
    public_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SignAnswer {
    signature: String,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    #[serde(rename = "__type")]
    kind: String,
}

impl AwsKey {
    /// Opens the key with the credentials of this machine. Does not connect yet.
    pub fn new(key: &str, region: Option<&str>, endpoint: Option<&str>) -> Result<Self, ChainError> {
        Self::open(key, region, endpoint, OsEnv)
    }

    pub(super) fn open(
        key: &str,
        region: Option<&str>,
        endpoint: Option<&str>,
        env: impl Env,
    ) -> Result<Self, ChainError> {
        let region = region_of(key, region)?;
        let endpoint = match endpoint {
            Some(url) => parse_signer_url(url)?,
            None => default_endpoint(region)?,
        };
        let http = SignerHttp::new()?;
        let context = context(&http, env);
        let signer = RequestSigner::new("kms", region);
        let session = CloudSession::new(http, context, sources(region), signer, error_name);
        Ok(Self { session, endpoint, key: key.to_owned() })
    }

    #[cfg(test)]
    pub(super) fn set_timeout(&mut self, timeout: std::time::Duration) {
        self.session.set_timeout(timeout);
    }

    async fn find_address(&self) -> Result<Address, String> {
        let answer: PublicKeyAnswer = self.ask("GetPublicKey", &json!({ "KeyId": self.key })).await?;
        address_of_der(&bytes_of(&answer.public_key)?)
    }

    async fn sign_digest(&self, digest: B256) -> Result<Signature, String> {
        let request = json!({
            "KeyId": self.key,
            "Message": base64_of(digest),
            // Any 32 bytes: the service does not know by which function they were hashed.
            "MessageType": "DIGEST",
            "SigningAlgorithm": "ECDSA_SHA_256",
        });
        let answer: SignAnswer = self.ask("Sign", &request).await?;
        signature_of_der(&bytes_of(&answer.signature)?)
    }

    async fn ask<T: DeserializeOwned>(&self, action: &str, body: &Value) -> Result<T, String> {
        let body = body.to_string();
        let request = Request::post(self.endpoint.as_str())
            .header(CONTENT_TYPE, "application/x-amz-json-1.1")
            .header("x-amz-target", format!("TrentService.{action}"))
            .header("x-amz-content-sha256", hex_sha256(body.as_bytes()))
            .body(Bytes::from(body));
        self.session.ask(request.map_err(|error| error.to_string())?).await
    }
}

impl RemoteKey for AwsKey {
    fn sign<'a>(&'a self, _unsigned: &'a [u8], hash: B256) -> BoxFuture<'a, Result<Signature, String>> {
        Box::pin(self.sign_digest(hash))
    }

    fn address(&self) -> BoxFuture<'_, Result<Address, String>> {
        Box::pin(self.find_address())
    }
}

/// Returns the sources of the AWS SDKs in their order, without programs that print credentials.
fn sources(region: &str) -> CredentialSources<Credential> {
    // The global endpoint of STS is in one region, and is missing in some partitions.
    let web_identity = AssumeRoleWithWebIdentityCredentialProvider::new()
        .with_region(region.to_owned())
        .with_regional_sts_endpoint()
        .with_role_session_name("foretell".to_owned());
    CredentialSources::new()
        .with("environment", EnvCredentialProvider::new())
        .with("profile", ProfileCredentialProvider::new())
        .with("single sign-on", SSOCredentialProvider::new())
        .with("web identity", web_identity)
        .with("container", ECSCredentialProvider::new())
        .with("instance metadata", IMDSv2CredentialProvider::new())
}

/// Returns the region of a key: that of its ARN, or the given one.
fn region_of<'a>(key: &'a str, given: Option<&'a str>) -> Result<&'a str, ChainError> {
    let rejected = |why: &str| Err(ChainError::Rejected(why.to_owned()));
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b":/_-".contains(&byte);
    if key.is_empty() || key.len() > 2048 || !key.bytes().all(is_key) {
        return rejected("the key must be an ARN, an id or alias/NAME of AWS KMS");
    }
    let in_arn = match key.split(':').collect::<Vec<_>>()[..] {
        ["arn", _, "kms", region, _, _] => Some(region),
        _ if key.contains(':') => return rejected("the key's ARN must be one of AWS KMS"),
        _ => None,
    };
    let region = match (in_arn, given) {
        (Some(in_arn), Some(given)) if in_arn != given => {
            return rejected("the region must be that of the key's ARN");
        }
        (Some(region), _) | (None, Some(region)) => region,
        (None, None) => return rejected("the region is missing: a key that is not an ARN needs one"),
    };
    // It becomes a part of a host name.
    let is_region = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if region.is_empty() || region.len() > 32 || !region.bytes().all(is_region) {
        return rejected("the region is not one of AWS");
    }
    Ok(region)
}

fn default_endpoint(region: &str) -> Result<Url, ChainError> {
    let suffix = match region {
        region if region.starts_with("cn-") => "amazonaws.com.cn",
        region if region.starts_with("eusc-") => "amazonaws.eu",
        _ => "amazonaws.com",
    };
    parse_signer_url(&format!("https://kms.{region}.{suffix}"))
}

/// Returns the name of an error, such as `AccessDeniedException`.
fn error_name(answer: &[u8]) -> Option<String> {
    let ErrorAnswer { kind } = serde_json::from_slice(answer).ok()?;
    // Some have a prefix.
    Some(kind.rsplit('#').next().unwrap_or_default().to_owned())
}
