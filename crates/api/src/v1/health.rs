//! Liveness and readiness of the service.

use app::health::{Check, Degradation};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use http_kit::{API_VERSION, Shared, json};

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
    /// Problems that the checks do not show. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    degraded: Vec<DegradationRecord>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReadinessChecks)]
#[serde(rename_all = "camelCase")]
struct Checks {
    /// Also `failing` while the database accepts no writes. A write is tried every 5 seconds.
    database: CheckRecord,
    /// Also `failing` while trades cannot complete: no executor can pay for gas, no process runs
    /// an executor, or no block has been read for 60 seconds. An embedded chain must accept writes.
    chain: CheckRecord,
    rate_limiter: CheckRecord,
    /// `failing` if an event has waited for 10 seconds and no process dispatches. `latencyMs` is the time that the oldest
    /// due delivery has waited for its attempt, in milliseconds.
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
#[schema(as = ReadinessDegradation, example = json!({
    "reason": "lane_low_on_gas",
    "detail": "lane 2 has 0.004 ETH left, which is enough for about 40 transactions",
    "stopsTrading": false,
}))]
#[serde(rename_all = "camelCase")]
struct DegradationRecord {
    /// `sync_behind`, `sync_stopped`, `lane_without_gas`, `lane_low_on_gas`, `worker_panicked`,
    /// `worker_failing`, `market_quarantined`, `trade_stuck`, `drift`, `recovering`,
    /// `fees_above_ceiling`, `hourly_volume_used`, `part_without_process`, `database_rejects_writes` or
    /// `clock_wrong`. More may be added.
    reason: &'static str,
    /// The description of the problem, for operators.
    detail: String,
    /// True if the problem stops all trades from completing. Only then is `status` `unavailable`.
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
    get, path = "/v1/health", operation_id = "getHealth", tag = "Service", summary = "Check if the process is alive",
    description = "Returns 200 while the process runs, without asking the database or the chain. Use it to decide on \
        restarts. For routing, a load balancer asks /readyz on the operator's listener of each process.",
    responses((status = 200, description = "The process is alive.", body = Health)),
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

/// `GET /v1/ready`: 200 if database, chain, rate limiter and webhook dispatcher pass their checks,
/// otherwise 503.
#[utoipa::path(
    get, path = "/v1/ready", operation_id = "getReadiness", tag = "Service", summary = "Check if the service is ready",
    description = "Checks every dependency and reports each result under checks: database, chain, rateLimiter and webhooks. \
        The service is ready if each of them passes within 2 seconds. The body of a 503 has the same form. degraded lists \
        further problems; the status stays ready unless one of them stops all trading.",
    responses(
        (status = 200, description = "The service is ready.", body = Ready),
        (status = 503, description = "A check fails; checks names it.", body = Ready),
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
