//! Posting webhooks: the one place of this service that calls addresses which strangers chose.
//!
//! Nothing that a receiver does costs more than an attempt's ten seconds, a few dozen kilobytes and one connection. There is
//! one deadline for everything from the name to the last byte; redirects are answers like any other; no proxy is asked, and
//! nothing is unpacked. A connection is only ever made to an address that the policy admits, and a kept one is to such an
//! address by its making.
//!
//! A connection that was kept may be closed by its receiver at the very moment it is used again. A delivery of which nothing
//! was written by then goes over a new one. Of any other nobody knows what the receiver has seen of it: the attempt has
//! failed, and the next one comes when its time comes, so that one event is never with its receiver twice at once.

mod answer;
mod connection;
mod dial;
mod outcome;
mod pool;
mod resolver;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::webhook::target::{Target, TargetPolicy};
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{self, ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

pub use outcome::{Attempt, NetworkFault, Outcome};
pub use resolver::{Resolver, SystemResolver};

use answer::Answer;
use connection::{Connection, Unanswered, cut};
use dial::Dialer;
use pool::Pool;

/// How long an attempt may take in all.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Posts to targets, over connections that it keeps. One is enough for a process.
pub struct Sender {
    dialer: Dialer,
    pool: Arc<Pool>,
}

impl Sender {
    /// A sender that believes the certificates that this machine believes. It fails where the machine believes none.
    pub fn new(policy: TargetPolicy, resolver: Arc<dyn Resolver>) -> Result<Self, rustls::Error> {
        let tls = tls()?.with_platform_verifier()?.with_no_client_auth();
        Ok(Self::with_tls(policy, resolver, tls))
    }

    /// A sender that believes no certificate: it still posts over plain http, where the policy allows that.
    pub fn believing_nobody(
        policy: TargetPolicy,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, rustls::Error> {
        let tls = tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Ok(Self::with_tls(policy, resolver, tls))
    }

    /// A sender that believes what `tls` says.
    pub fn with_tls(policy: TargetPolicy, resolver: Arc<dyn Resolver>, mut tls: ClientConfig) -> Self {
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { dialer: Dialer { policy, resolver, tls: Arc::new(tls) }, pool: Arc::default() }
    }

    /// Posts the body with these headers, and `Host` and `Content-Length`, to this URL, which is judged now: it was set under what
    /// may have been another policy.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Attempt {
        let Ok(target) = Target::parse(url, &self.dialer.policy) else {
            return Attempt { outcome: Outcome::TargetRefused, duration_ms: 0, answer_head: None };
        };
        let began_at = Instant::now();
        let exchange = timeout_at(began_at + DEADLINE, self.exchange(&target, headers, body)).await;
        let duration_ms = i64::try_from(began_at.elapsed().as_millis()).unwrap_or(i64::MAX);
        let (outcome, answer_head) = match exchange {
            Ok(Ok((connection, answer))) => {
                if answer.is_whole {
                    self.keep(&target, connection).await;
                }
                (Outcome::Answered { status: answer.status, retry_after: answer.retry_after }, answer.head)
            }
            Ok(Err(outcome)) => (outcome, None),
            Err(_) => (Outcome::TimedOut, None),
        };
        Attempt { outcome, duration_ms, answer_head }
    }

    async fn exchange(
        &self,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(Connection, Answer), Outcome> {
        let request = request(target, headers, body)?;
        let (connection, response) = self.send(target, request).await?;
        Ok((connection, answer::read(response).await))
    }

    async fn keep(&self, target: &Target, connection: Connection) {
        if let Some(connection) = connection.settled().await {
            self.pool.put(target.origin(), connection);
        }
    }

    async fn send(
        &self,
        target: &Target,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Connection, Response<Incoming>), Outcome> {
        while let Some(mut connection) = self.pool.take(target.origin()) {
            if connection.is_closed() {
                continue;
            }
            match connection.send(request).await {
                Ok(response) => return Ok((connection, response)),
                Err(Unanswered::Unsent(unsent)) => request = *unsent,
                Err(Unanswered::Cut(error)) => return Err(cut(error)),
            }
        }
        let mut connection = self.dialer.dial(target).await?;
        let response = connection.send(request).await?;
        Ok((connection, response))
    }
}

fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
}

fn request(target: &Target, mut headers: HeaderMap, body: Bytes) -> Result<Request<Full<Bytes>>, Outcome> {
    let host = HeaderValue::try_from(target.authority()).map_err(|_| Outcome::TargetRefused)?;
    headers.insert(HOST, host);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::try_from(target.path_and_query()).map_err(|_| Outcome::TargetRefused)?;
    *request.headers_mut() = headers;
    Ok(request)
}
