//! Usage statistics of the calling key.

use std::collections::BTreeMap;

use app::usage::Usage;
use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::Timestamp;
use domain::ids::KeyId;
use domain::key::{Scopes, Tier};
use domain::usage::{GasCounts, Histogram, RequestCounts, TradeCounts, WebhookCounts, Windows};
use http_kit::{AuthManage, Caller, Meta, NoParameters, NotCounted, Problem, Query, Shared};
use serde::Serialize;
use store::keys::Key;
use utoipa::ToSchema;

use super::key::{LimitsRecord, SpendRecord};
use crate::openapi::answers::answers;

answers! {
    /// The calling key's usage.
    UsageAnswer = single("usage", UsageRecord);
}

/// The usage of one key. Each window is the sum of the whole hours that began within it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
#[serde(rename_all = "camelCase")]
pub struct UsageRecord {
    api_key_id: KeyId,
    tier: Tier,
    scopes: Scopes,
    limits: LimitsRecord,
    spend: SpendRecord,
    trades: Windows<TradeCounts>,
    /// The cost of the transactions that executed the key's trades. The cost of a transaction is
    /// divided among its trades.
    gas: Windows<GasCounts>,
    webhooks: Windows<WebhookCounts>,
    auth: Windows<AuthRecord>,
    latency: Windows<LatencyRecord>,
    /// The time of the key's last request, except requests to this route. Null if there was none.
    last_used_at: Option<Timestamp>,
}

/// Requests that were rejected before they reached a route.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsageAuth)]
#[serde(rename_all = "camelCase")]
struct AuthRecord {
    rate_limit_rejections: u64,
    /// All other rejections.
    failures: u64,
    /// Both counts by error code. Codes that did not occur are omitted.
    #[schema(value_type = BTreeMap<String, u64>)]
    by_code: BTreeMap<&'static str, u64>,
}

/// The latency of the other requests.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsageLatency)]
#[serde(rename_all = "camelCase")]
struct LatencyRecord {
    count: u64,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    p99_ms: Option<u64>,
}

/// `GET /v1/account/usage`: the calling key's own numbers.
#[utoipa::path(
    get, path = "/v1/account/usage", operation_id = "getUsage", tag = "Account", summary = "Read the calling key's usage",
    description = "The calling key's trades, gas, webhook deliveries, rejected requests and latency over \
        the last 24 hours, 7 days and 30 days. Each window is a sum of whole hours, including the current \
        one so far. Requests to this route are not counted.",
    responses((status = 200, description = "The key's usage.", body = UsageAnswer)),
)]
pub async fn usage(
    State(app): State<Shared>,
    caller: Caller<AuthManage>,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<impl IntoResponse, Problem> {
    let usage = app::usage::of_key(&app.ctx, &caller).await?;
    // Reading the usage must not change it.
    Ok((Extension(NotCounted), meta.single("usage", UsageRecord::new(&caller.key, &usage))))
}

impl UsageRecord {
    fn new(key: &Key, usage: &Usage) -> Self {
        Self {
            api_key_id: key.id,
            tier: key.tier,
            scopes: key.scopes,
            limits: key.limits().into(),
            spend: usage.spend.into(),
            trades: usage.trades,
            gas: usage.gas,
            webhooks: usage.webhooks,
            auth: usage.requests.map(AuthRecord::new),
            latency: usage.requests.map(|requests| LatencyRecord::new(&requests.latency)),
            last_used_at: usage.last_used_at,
        }
    }
}

impl AuthRecord {
    fn new(requests: &RequestCounts) -> Self {
        Self {
            rate_limit_rejections: requests.rate_limit_rejections(),
            failures: requests.auth_failures(),
            by_code: requests.refusals().map(|(code, count)| (code.as_str(), count)).collect(),
        }
    }
}

impl LatencyRecord {
    fn new(latency: &Histogram) -> Self {
        Self {
            count: latency.count(),
            p50_ms: latency.percentile_ms(50),
            p95_ms: latency.percentile_ms(95),
            p99_ms: latency.percentile_ms(99),
        }
    }
}
