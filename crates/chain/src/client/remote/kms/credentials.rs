//! The sources of this machine's credentials for key services.

use std::sync::Arc;

use alloy::transports::http::reqwest;
use bytes::Bytes;
use http::{Request, Response};
use reqsign_core::{
    Context, Env, Error, FileRead, HttpSend, ProvideCredential, ProvideCredentialDyn, Result,
};

use crate::client::remote::http::SignerHttp;

/// Returns what the sources use: files, the environment and limited HTTP requests. They run no
/// programs.
pub fn context(http: &SignerHttp, env: impl Env) -> Context {
    Context::new().with_file_read(Files).with_http_send(http.clone()).with_env(env)
}

/// Sources of credentials, asked in their order.
#[derive(Debug)]
pub struct CredentialSources<C>(Vec<(&'static str, Arc<dyn ProvideCredentialDyn<Credential = C>>)>);

impl<C: Send + Sync + Unpin + 'static> CredentialSources<C> {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a source. Its name is shown in errors.
    #[must_use]
    pub fn with(mut self, name: &'static str, source: impl ProvideCredential<Credential = C>) -> Self {
        self.0.push((name, Arc::new(source)));
        self
    }
}

impl<C: std::fmt::Debug + Send + Sync + Unpin + 'static> ProvideCredential for CredentialSources<C> {
    type Credential = C;

    async fn provide_credential(&self, context: &Context) -> Result<Option<C>> {
        let mut failed = Vec::new();
        for (name, source) in &self.0 {
            match source.provide_credential_dyn(context).await {
                Ok(Some(credential)) => return Ok(Some(credential)),
                Ok(None) => {}
                // The text of the error may quote an answer.
                Err(error) => failed.push(format!("{name} ({})", error.kind())),
            }
        }
        let sources = match failed.is_empty() {
            true => "no source has any".to_owned(),
            false => format!("failed sources: {}", failed.join(", ")),
        };
        Err(Error::credential_invalid(format!("this machine has no credentials for it: {sources}")))
    }
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        Ok(tokio::fs::read(path).await?)
    }
}

impl HttpSend for SignerHttp {
    async fn http_send(&self, request: Request<Bytes>) -> Result<Response<Bytes>> {
        let request =
            reqwest::Request::try_from(request).map_err(|_| Error::request_invalid("not a request"))?;
        let answer = self.send(request).await.map_err(Error::unexpected)?;
        let status = answer.status();
        // The library logs failed answers.
        let body = if status.is_success() { answer.into_body() } else { Bytes::new() };
        Ok(Response::builder().status(status).body(body)?)
    }
}
