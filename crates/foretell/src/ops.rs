//! The operator's listener: the state of this process, its drain and its log level. It has no
//! authentication, so it is bound to loopback unless configured otherwise, and never shared with
//! the public listener.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use app::Ctx;
use app::health::ServingFault;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use http_kit::{ConnectionLimits, ServeLimits, Server, TrustedProxies};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::ResolvedConfig;
use crate::logging::LogLevel;
use crate::optional_listen::OptionalListen;
use crate::private_hosts::{PrivateHosts, reject_foreign_hosts};
use crate::process_roles::ProcessRoles;
use crate::start_error::StartError;

/// The usual port.
const PORT: u16 = 9464;
/// Maximum size of a request's body, which is a log level.
const MAX_BODY_BYTES: usize = 1_024;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum number of open connections.
pub const MAX_CONNECTIONS: usize = 64;

const LIMITS: ServeLimits = ServeLimits {
    connections: ConnectionLimits {
        address: MAX_CONNECTIONS,
        network: MAX_CONNECTIONS,
        site: MAX_CONNECTIONS,
        total: MAX_CONNECTIONS,
    },
    first_byte_timeout: Duration::from_secs(5),
    header_timeout: Duration::from_secs(5),
    write_timeout: Duration::from_secs(5),
    drain: Duration::from_secs(1),
};

/// The bound listener.
pub struct OpsEndpoint {
    listener: TcpListener,
    address: SocketAddr,
}

/// State that the handlers share.
#[derive(Clone)]
pub struct Ops {
    pub ctx: Ctx,
    pub roles: ProcessRoles,
    /// Cancelling it begins the drain.
    pub draining: CancellationToken,
    pub shutdown_delay: Duration,
    pub log_level: LogLevel,
    /// The names that the listener answers to.
    pub hosts: PrivateHosts,
}

/// The running listener. It answers until the service has stopped.
pub struct OpsServer {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl OpsEndpoint {
    /// Binds the address of `config`. Without one, `foretell serve` uses the usual port, or another
    /// one if several services run side by side.
    pub fn bind(config: &ResolvedConfig) -> Result<Option<Self>, StartError> {
        let at = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        match config.ops_listen {
            Some(OptionalListen::Off) => Ok(None),
            Some(OptionalListen::At(address)) => Self::at(address).map(Some),
            // A listen port of 0 means that several services run side by side, for example in tests.
            None if config.listen.port() == 0 => Self::at(at(0)).map(Some),
            None => Self::at(at(PORT)).or_else(|_| Self::at(at(0))).map(Some),
        }
    }

    fn at(address: SocketAddr) -> Result<Self, StartError> {
        let (listener, address) = crate::run::listen(address)?;
        Ok(Self { listener, address })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn serve(self, ops: Ops) -> OpsServer {
        tracing::info!(address = %self.address, "the operator's listener serves");
        // It has no authentication, so warn about other addresses.
        if !self.address.ip().is_loopback() {
            tracing::warn!(address = %self.address, "the operator's listener is reachable from other machines");
        }
        let stop = CancellationToken::new();
        let server = Server {
            listener: self.listener,
            router: router(ops),
            refuse: Arc::new(|_, _| {
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()
            }),
            limits: LIMITS,
            trusted_proxies: TrustedProxies::default(),
            meter: None,
            draining: CancellationToken::new(),
            metrics: None,
        };
        let task = tokio::spawn(server.run(stop.clone().cancelled_owned()));
        OpsServer { stop, task }
    }
}

impl OpsServer {
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the operator's listener failed");
        }
    }
}

fn router(ops: Ops) -> Router {
    Router::new()
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/drain", post(drain))
        .route("/log-level", put(set_log_level))
        .layer(axum::middleware::from_fn(reject_browsers))
        .layer(axum::middleware::from_fn_with_state(ops.hosts.clone(), reject_foreign_hosts))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(ops)
}

/// Rejects requests of web pages. A page of any site could otherwise stop a service on the
/// visitor's machine.
async fn reject_browsers(request: Request, next: Next) -> Response {
    let is_of_page =
        |headers: &HeaderMap| headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
    if is_of_page(request.headers()) {
        let error = json!({ "error": "web pages must not use the operator's listener" });
        return (StatusCode::FORBIDDEN, Json(error)).into_response();
    }
    next.run(request).await
}

async fn alive() -> Response {
    Json(json!({ "status": "alive" })).into_response()
}

/// Whether this process should get requests. Faults of what all processes share only degrade it.
async fn ready(State(ops): State<Ops>) -> Response {
    let faults = ops.ctx.process.serving.faults(ops.ctx.now());
    let reasons: Vec<String> = faults.into_iter().map(reason).collect();
    let (code, status) = match reasons.is_empty() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unready"),
    };
    let mut body = json!({ "status": status, "roles": ops.roles.names() });
    if !reasons.is_empty() {
        body["reasons"] = json!(reasons);
    }
    let degraded: Vec<_> = app::health::known_problems(&ops.ctx)
        .iter()
        .map(|of| json!({ "reason": of.reason.as_str(), "detail": of.detail }))
        .collect();
    if !degraded.is_empty() {
        body["degraded"] = json!(degraded);
    }
    (code, Json(body)).into_response()
}

fn reason(fault: ServingFault) -> String {
    match fault {
        ServingFault::Draining => "this process is draining".to_owned(),
        ServingFault::OldSchema => {
            "the database schema is older than this program: run `foretell migrate`".to_owned()
        }
        ServingFault::PoolExhausted(pool) => {
            format!(
                "no request got a connection of the pool {pool} for 10 s, although the database accepts new ones"
            )
        }
        ServingFault::Storage(storage, why) => {
            format!("the storage of the {} cannot be used: {why}", storage.as_str())
        }
    }
}

async fn metrics(State(ops): State<Ops>) -> Response {
    let text = app::scrape::metrics_text(&ops.ctx);
    ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response()
}

async fn drain(State(ops): State<Ops>) -> Response {
    ops.ctx.process.serving.begin_drain();
    ops.draining.cancel();
    let body = json!({ "status": "draining", "closesInS": ops.shutdown_delay.as_secs() });
    (StatusCode::ACCEPTED, Json(body)).into_response()
}

async fn set_log_level(State(ops): State<Ops>, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body);
    let level = text.trim();
    match ops.log_level.set(level) {
        Ok(()) => {
            tracing::info!(level, "the log level was set");
            Json(json!({ "logLevel": level })).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, Json(json!({ "error": error.to_string() }))).into_response(),
    }
}
