//! Whether the service lives, and whether it is ready for work.

use app::health::{Check, Degradation};
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
    /// What is wrong although everything answers. Absent if nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    degraded: Vec<DegradationRecord>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReadinessChecks)]
#[serde(rename_all = "camelCase")]
struct Checks {
    database: CheckRecord,
    /// Also failing while trades cannot be completed: no executor can pay for gas, or no block has been read for a minute.
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

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReadinessDegradation)]
#[serde(rename_all = "camelCase")]
struct DegradationRecord {
    /// `sync_behind`, `sync_stopped`, `lane_without_gas`, `lane_low_on_gas`, `worker_panicked`, `worker_failing`,
    /// `market_quarantined`, `trade_stuck`, `drift`, `recovering`, `fees_above_ceiling` or `hourly_volume_used`. More may be
    /// added.
    reason: &'static str,
    /// What is wrong, for operators.
    detail: String,
    /// Whether no trade can be completed because of it; only then the status is `unavailable`.
    stops_trading: bool,
}

impl From<Degradation> for DegradationRecord {
    fn from(Degradation { reason, detail, stops_trading }: Degradation) -> Self {
        Self { reason: reason.as_str(), detail, stops_trading }
    }
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
        and rateLimiter. Ready is where all of them answer within two seconds. 503 has the same body. What is wrong although \
        everything answers is listed under degraded; the status stays ready unless trading is impossible.",
    responses(
        (status = 200, description = "Ready.", body = Ready),
        (status = 503, description = "A dependency does not answer; the body says which.", body = Ready),
    ),
    extensions(("x-volatile" = json!(true))),
)]
pub async fn ready(State(app): State<Shared>) -> Response {
    let readiness = app::health::readiness(&app.ctx).await;
    let (status, word) = match readiness.is_ready() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let checks = Checks {
        database: readiness.database.into(),
        chain: readiness.chain.into(),
        rate_limiter: readiness.rate_limiter.into(),
        webhooks: readiness.webhooks.into(),
    };
    let degraded = readiness.degraded.into_iter().map(Into::into).collect();
    (status, json(&Ready { status: word, checks, degraded })).into_response()
}
