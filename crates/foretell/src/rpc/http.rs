//! JSON-RPC over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_kit::{ConnectionLimits, ServeLimits, Server, TrustedProxies};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::executor::RequestExecutor;
use crate::private_hosts::{PrivateHosts, reject_foreign_hosts};

/// Maximum size of a request. A batch of signed transactions fits.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Maximum time for the body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for a request, including its body.
const DEADLINE: Duration = Duration::from_secs(10);

const LIMITS: ServeLimits = ServeLimits {
    connections: ConnectionLimits { address: 128, network: 256, site: 256, total: 256 },
    first_byte_timeout: Duration::from_secs(5),
    header_timeout: Duration::from_secs(5),
    write_timeout: Duration::from_secs(15),
    drain: Duration::from_secs(2),
};

/// Serves JSON-RPC until `stop` is cancelled.
pub async fn serve(
    listener: TcpListener,
    executor: Arc<RequestExecutor>,
    hosts: PrivateHosts,
    stop: CancellationToken,
) {
    // Some tools are configured with a path, so `/rpc` works too.
    let router = Router::new().route("/", post(answer)).route("/rpc", post(answer)).with_state(executor);
    let router = router.layer(axum::middleware::from_fn_with_state(hosts, reject_foreign_hosts));
    let server = Server {
        listener,
        router,
        refuse: Arc::new(|_, _| {
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()
        }),
        limits: LIMITS,
        trusted_proxies: TrustedProxies::default(),
        meter: None,
        draining: CancellationToken::new(),
        metrics: None,
    };
    server.run(stop.cancelled_owned()).await;
}

async fn answer(State(executor): State<Arc<RequestExecutor>>, headers: HeaderMap, body: Body) -> Response {
    // Prevents CSRF: a browser sends this content type to another origin only after a preflight.
    let content_type = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    if !content_type.starts_with(b"application/json") {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let answered = tokio::time::timeout(DEADLINE, async {
        let body = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
            Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
        };
        match executor.answer(body).await {
            Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
            Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    });
    answered.await.unwrap_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response())
}
