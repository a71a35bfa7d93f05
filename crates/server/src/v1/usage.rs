//! What the calling key was used for.

use std::collections::BTreeMap;

use app::usage::Usage;
use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::Timestamp;
use domain::ids::KeyId;
use domain::key::{Scopes, Tier};
use domain::usage::{GasCounts, Histogram, RequestCounts, TradeCounts, WebhookCounts, Windows};
use serde::Serialize;
use store::keys::Key;
use utoipa::ToSchema;

use super::key::{LimitsRecord, SpendRecord};
use crate::http::{AuthManage, Caller, Meta, NoParameters, NotCounted, Problem, Query, Shared};
use crate::openapi::answers::answers;

answers! {
    /// The calling key's use.
    UsageAnswer = single("usage", UsageRecord);
}

/// The use of one key. Each window is a sum of whole hours, those that began less than its length ago.
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
    /// What the transactions cost that carried the key's trades, each divided over its trades.
    gas: Windows<GasCounts>,
    webhooks: Windows<WebhookCounts>,
    auth: Windows<AuthRecord>,
    latency: Windows<LatencyRecord>,
    /// When the key's last request was answered; reads of this resource do not count. Null if there was none.
    last_used_at: Option<Timestamp>,
}

/// Requests that were refused before they were looked at.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsageAuth)]
#[serde(rename_all = "camelCase")]
struct AuthRecord {
    rate_limit_rejections: u64,
    /// All others.
    failures: u64,
    /// Both by their code; a code that was not met is left out.
    #[schema(value_type = BTreeMap<String, u64>)]
    by_code: BTreeMap<&'static str, u64>,
}

/// How long the other requests took.
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
    get, path = "/v1/account/usage", operation_id = "getUsage", tag = "Account", summary = "Read the calling key's use",
    description = "The calling key's own numbers over the last 24 hours, 7 days and 30 days: trades, their gas, webhook deliveries, \
        refusals at the door and latency. Each window is a sum of whole hours, the present one as far as it has come. \
        Reading it is not counted as use of the key.",
    responses((status = 200, description = "The key's use.", body = UsageAnswer)),
)]
pub async fn usage(
    State(app): State<Shared>,
    caller: Caller<AuthManage>,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<impl IntoResponse, Problem> {
    let usage = app::usage::of_key(&app.ctx, &caller).await?;
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
