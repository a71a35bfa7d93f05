//! The calling key's properties, without any secret.

use app::usage::Spend;
use axum::extract::State;
use domain::ids::KeyId;
use domain::key::{Environment, KeyLimits, Scopes, Tier};
use domain::{Timestamp, Usdc};
use http_kit::{AnyKey, Caller, Meta, NoParameters, Problem, Query, Shared, Single};
use serde::Serialize;
use store::keys::Key;
use utoipa::ToSchema;

use crate::openapi::answers::answers;

answers! {
    KeyAnswer = single("key", KeyRecord);
}

/// An API key. The plaintext key is not included.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
#[serde(rename_all = "camelCase")]
pub struct KeyRecord {
    id: KeyId,
    /// The label chosen at issue.
    name: String,
    /// `live` or `test`.
    environment: &'static str,
    tier: Tier,
    scopes: Scopes,
    /// IP addresses and CIDR ranges. Empty if the key may be used from any address.
    ip_allowlist: Vec<String>,
    webhook_url: Option<String>,
    /// The API version for requests that name none. Null for the current version.
    api_version: Option<String>,
    /// True if trading with the key is paused.
    paused: bool,
    /// True if the key is an agent's: it confirms no trade, and only the owner of the account
    /// confirms the large trades that it creates.
    agent: bool,
    /// Null if the key does not expire.
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
    limits: LimitsRecord,
    spend: SpendRecord,
}

/// The limits of a key: its own overrides, or else its tier's defaults. Amounts are atomic-6
/// decimal strings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeyLimits)]
#[serde(rename_all = "camelCase")]
pub(super) struct LimitsRecord {
    requests_per_minute: u32,
    daily_spend_usdc: Usdc,
    per_trade_usdc: Usdc,
    /// Null if no trade is held for confirmation.
    high_value_threshold_usdc: Option<Usdc>,
}

/// The part of its daily cap that a key has used.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeySpend)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpendRecord {
    last24h_usdc: Usdc,
    remaining_usdc: Usdc,
}

/// `GET /v1/key`: the calling key. It needs no scope.
#[utoipa::path(
    get, path = "/v1/key", operation_id = "getKey", tag = "Account", summary = "Read the calling key",
    description = "The calling key's properties, scopes and limits, without secrets. Needs no \
        particular scope.",
    responses((status = 200, description = "The key.", body = KeyAnswer)),
)]
pub async fn key(
    State(app): State<Shared>,
    caller: Caller<AnyKey>,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<KeyRecord>, Problem> {
    let spend = app::usage::spend(&app.ctx, &caller).await?;
    Ok(meta.single("key", KeyRecord::new(&caller.key, app.ctx.config.environment, spend)))
}

impl KeyRecord {
    fn new(key: &Key, environment: Environment, spend: Spend) -> Self {
        Self {
            id: key.id,
            name: key.name.clone(),
            environment: environment.as_str(),
            tier: key.tier,
            scopes: key.scopes,
            ip_allowlist: key.ip_allowlist.entries().collect(),
            // The webhook secret and the key's digest are not part of the record.
            webhook_url: key.webhook_url.clone(),
            api_version: key.api_version.clone(),
            paused: key.paused_at.is_some(),
            agent: key.is_agent,
            expires_at: key.expires_at,
            created_at: key.created_at,
            limits: key.limits().into(),
            spend: spend.into(),
        }
    }
}

impl From<KeyLimits> for LimitsRecord {
    fn from(limits: KeyLimits) -> Self {
        Self {
            requests_per_minute: limits.requests_per_minute,
            daily_spend_usdc: limits.daily,
            per_trade_usdc: limits.per_trade,
            high_value_threshold_usdc: limits.high_value,
        }
    }
}

impl From<Spend> for SpendRecord {
    fn from(spend: Spend) -> Self {
        Self { last24h_usdc: spend.last_24h, remaining_usdc: spend.remaining }
    }
}
