//! Whether the service lives, and whether it is ready for work.

use app::health::{Check, Readiness};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{API_VERSION, Shared, json};

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The program's version.
    version: &'static str,
    /// The API's version.
    api_version: &'static str,
    uptime_seconds: i64,
    time: Timestamp,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Readiness)]
struct Ready {
    /// `ready` or `unavailable`.
    status: &'static str,
    checks: Checks,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReadinessChecks)]
#[serde(rename_all = "camelCase")]
struct Checks {
    database: CheckRecord,
    chain: CheckRecord,
    rate_limiter: CheckRecord,
    /// Failing where this process does not look after deliveries; latencyMs is how long the longest due delivery has waited
    /// to be begun.
    webhooks: CheckRecord,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReadinessCheck)]
#[serde(rename_all = "camelCase")]
struct CheckRecord {
    /// `ok` or `failing`.
    status: &'static str,
    latency_ms: i64,
}

impl From<Check> for CheckRecord {
    fn from(check: Check) -> Self {
        Self { status: if check.ok { "ok" } else { "failing" }, latency_ms: check.latency_ms }
    }
}

/// `GET /v1/health`: 200 while the process answers. Touches no dependency.
#[utoipa::path(
    get, path = "/v1/health", operation_id = "getHealth", tag = "Service", summary = "Whether the process lives",
    description = "200 while the process answers. No database and no chain is asked: use it for restarts, and \
        /v1/ready for routing.",
    responses((status = 200, description = "The process lives.", body = Health)),
    extensions(("x-volatile" = json!(true))),
)]
pub async fn health(State(app): State<Shared>) -> Response {
    let time = app.ctx.now();
    let uptime_seconds = time.since_ms(app.started_at).max(0) / 1_000;
    json(&Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
        api_version: API_VERSION,
        uptime_seconds,
        time,
    })
}

/// `GET /v1/ready`: 200 where database, chain and rate limiter answer within two seconds, otherwise 503, with each one's answer.
#[utoipa::path(
    get, path = "/v1/ready", operation_id = "getReadiness", tag = "Service", summary = "Whether it can do its work",
    description = "Asks everything that the service depends on, and shows each one's answer under checks: database, chain \
        and rateLimiter. Ready is where all of them answer within two seconds. 503 has the same body.",
    responses(
        (status = 200, description = "Ready.", body = Ready),
        (status = 503, description = "A dependency does not answer; the body says which.", body = Ready),
    ),
    extensions(("x-volatile" = json!(true))),
)]
pub async fn ready(State(app): State<Shared>) -> Response {
    let readiness = app::health::readiness(&app.ctx).await;
    let status = if is_ready(&readiness) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if is_ready(&readiness) { "ready" } else { "unavailable" };
    let checks = Checks {
        database: readiness.database.into(),
        chain: readiness.chain.into(),
        rate_limiter: readiness.rate_limiter.into(),
        webhooks: readiness.webhooks.into(),
    };
    (status, json(&Ready { status: word, checks })).into_response()
}

const fn is_ready(readiness: &Readiness) -> bool {
    readiness.database.ok && readiness.chain.ok && readiness.rate_limiter.ok && readiness.webhooks.ok
}
