//! Posts webhooks. This is the only part of the service that connects to addresses chosen by
//! clients.
//!
//! One attempt costs at most ten seconds, a few dozen kilobytes and one connection. One deadline
//! covers everything from the DNS lookup to the last byte. Redirects are not followed, proxies are
//! not used, and bodies are not decompressed. Connections are only made to addresses that the
//! policy allows, so reused connections also lead to such addresses.
//!
//! A connection belongs to one [`Endpoint`] and never carries another one's deliveries. HTTP/1.1
//! matches responses to requests only by their order, so whoever answers on a shared connection
//! would decide about the next delivery, whoever its user is. For the same reason a request is
//! never written while unread bytes are waiting: a receiver that responds twice to one delivery
//! would otherwise answer the next one.
//!
//! A receiver may close an idle connection just when it is reused. If nothing of the request was
//! written by then, or if unread bytes were waiting, the request goes over a new connection. Otherwise the receiver may have seen
//! it, so the attempt fails and is retried later. That way one event is never sent twice at the
//! same time.

mod answer;
mod connection;
mod dial;
mod lookups;
mod outcome;
mod pool;
mod resolver;
mod unasked;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::ids::{KeyId, UserId};
use domain::key::Tier;
use domain::webhook::target::{Target, TargetPolicy};
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{self, ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

pub use outcome::{Attempt, NetworkFault, PostOutcome};
pub use resolver::{Resolver, SystemResolver};

use answer::ReceiverResponse;
use connection::{SendFailure, TargetConnection, cut};
use dial::Dialer;
use lookups::Lookups;
use pool::Pool;

use crate::limits::Budgets;

/// The total time limit of an attempt.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// The receiver of one key's events. It doesn't implement `Debug`, because the URL may contain
/// secrets of the receiver.
#[derive(Clone, Copy)]
pub struct Endpoint<'a> {
    /// The user of the key, and the key's tier.
    pub user_id: UserId,
    pub tier: Tier,
    pub key_id: KeyId,
    pub url: &'a str,
}

/// Posts to endpoints over pooled connections. One sender per process is enough.
pub struct WebhookSender {
    dialer: Dialer,
    pool: Arc<Pool>,
}

impl WebhookSender {
    /// Creates a sender that trusts the certificates of the operating system. Fails if the system
    /// has none.
    pub fn new(policy: TargetPolicy, resolver: Arc<dyn Resolver>) -> Result<Self, rustls::Error> {
        let tls = tls()?.with_platform_verifier()?.with_no_client_auth();
        Ok(Self::with_tls(policy, resolver, tls))
    }

    /// Creates a sender that trusts no certificate. It can only post over plain HTTP, if the policy
    /// allows that.
    pub fn believing_nobody(
        policy: TargetPolicy,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, rustls::Error> {
        let tls = tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Ok(Self::with_tls(policy, resolver, tls))
    }

    /// Creates a sender with the given TLS configuration.
    pub fn with_tls(policy: TargetPolicy, resolver: Arc<dyn Resolver>, mut tls: ClientConfig) -> Self {
        // `TargetConnection` only speaks HTTP/1.1.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            dialer: Dialer { policy, lookups: Lookups::new(resolver), tls: Arc::new(tls) },
            pool: Arc::default(),
        }
    }

    /// Posts the body with these headers, and adds `Host` and `Content-Length`. The URL is checked
    /// again, because the policy may have changed since it was set. If its host must be looked up, that
    /// counts on the budget of its user.
    pub async fn post(
        &self,
        budgets: &Budgets,
        endpoint: Endpoint<'_>,
        headers: HeaderMap,
        body: Bytes,
    ) -> Attempt {
        let Ok(target) = Target::parse(endpoint.url, &self.dialer.policy) else {
            return Attempt { outcome: PostOutcome::TargetRefused, duration_ms: 0, answer_head: None };
        };
        let began_at = Instant::now();
        let exchange = self.exchange(budgets, endpoint, &target, headers, body);
        let exchange = timeout_at(began_at + DEADLINE, exchange).await;
        let duration_ms = i64::try_from(began_at.elapsed().as_millis()).unwrap_or(i64::MAX);
        let (outcome, answer_head) = match exchange {
            Ok(Ok((connection, answer))) => {
                if answer.is_whole {
                    self.keep(endpoint, &target, connection).await;
                }
                (
                    PostOutcome::Answered { status: answer.status, retry_after: answer.retry_after },
                    answer.head,
                )
            }
            Ok(Err(outcome)) => (outcome, None),
            Err(_) => (PostOutcome::TimedOut, None),
        };
        Attempt { outcome, duration_ms, answer_head }
    }

    async fn exchange(
        &self,
        budgets: &Budgets,
        endpoint: Endpoint<'_>,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(TargetConnection, ReceiverResponse), PostOutcome> {
        let request = request(target, headers, body)?;
        let (connection, response) = self.send(budgets, endpoint, target, request).await?;
        Ok((connection, answer::read(response).await))
    }

    async fn keep(&self, endpoint: Endpoint<'_>, target: &Target, connection: TargetConnection) {
        if let Some(connection) = connection.settled().await {
            self.pool.put(target.origin(), endpoint, connection);
        }
    }

    async fn send(
        &self,
        budgets: &Budgets,
        endpoint: Endpoint<'_>,
        target: &Target,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(TargetConnection, Response<Incoming>), PostOutcome> {
        while let Some(mut connection) = self.pool.take(target.origin(), endpoint) {
            if connection.is_closed() {
                continue;
            }
            match connection.send(request).await {
                Ok(response) => return Ok((connection, response)),
                // Nothing was written, so sending it again cannot deliver it twice.
                Err(SendFailure::Unsent(unsent)) => request = *unsent,
                Err(SendFailure::Cut(error)) => return Err(cut(error)),
            }
        }
        let mut connection = self.dialer.dial(budgets, endpoint, target).await?;
        let response = connection.send(request).await?;
        Ok((connection, response))
    }
}

fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
}

fn request(
    target: &Target,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, PostOutcome> {
    let host = HeaderValue::try_from(target.authority()).map_err(|_| PostOutcome::TargetRefused)?;
    headers.insert(HOST, host);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::try_from(target.path_and_query()).map_err(|_| PostOutcome::TargetRefused)?;
    *request.headers_mut() = headers;
    Ok(request)
}
