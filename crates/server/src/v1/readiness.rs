//! What is still missing before the calling key can trade.

use app::readiness::Readiness;
use axum::extract::State;
use domain::{ErrorCode, Timestamp, Usdc};
use serde::Serialize;
use utoipa::ToSchema;

use super::portfolio::CapsRecord;
use crate::http::{Caller, Meta, NoParameters, PortfolioRead, Problem, Query, Shared, Single};
use crate::openapi::answers::answers;
use crate::openapi::formats::Address;

answers! {
    /// Whether the calling key can trade.
    AccountReadinessAnswer = single("readiness", ReadinessRecord);
}

/// Account, delegation and money, in the order in which a trade asks for them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountReadiness)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessRecord {
    /// Whether the key can trade now.
    ready: bool,
    provisioned: Provisioned,
    delegated: Delegated,
    funded: Funded,
    /// In order; empty where the key can trade.
    next_steps: Vec<NextStep>,
}

/// Whether the smart account is on chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountProvisioned)]
#[serde(rename_all = "camelCase")]
struct Provisioned {
    ready: bool,
    /// Where the account is or will be; null where the user has none.
    #[schema(value_type = Option<Address>)]
    address: Option<String>,
}

/// Whether the account lets the key trade.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountDelegated)]
#[serde(rename_all = "camelCase")]
struct Delegated {
    ready: bool,
    /// Which of the account's policies is this key's.
    key_index: u32,
    /// Null where the account never enabled the key, or took it back.
    expires_at: Option<Timestamp>,
    caps: CapsRecord,
}

/// Whether the account holds USDC. Amounts are atomic-6 decimal strings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountFunded)]
#[serde(rename_all = "camelCase")]
struct Funded {
    ready: bool,
    usdc_balance: Usdc,
    reserved_usdc: Usdc,
    /// How much the account lets the service's contract move; as a rule without end.
    #[schema(pattern = "^(0|[1-9][0-9]*)$")]
    allowance: String,
}

/// What to do next.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountNextStep)]
struct NextStep {
    /// The code that a trade would be refused with.
    code: &'static str,
    /// How to go about it.
    detail: String,
}

/// `GET /v1/account/readiness`: works from the first moment of a key, before there is an account.
#[utoipa::path(
    get, path = "/v1/account/readiness", operation_id = "getAccountReadiness", tag = "Account",
    summary = "What is missing before the key can trade",
    description = "Account, delegation and money, in the order in which a trade asks for them, and what to do next. It \
        works from the first moment of a key, before there is an account.",
    responses((status = 200, description = "What is there and what is missing.", body = AccountReadinessAnswer)),
)]
pub async fn readiness(
    State(app): State<Shared>,
    caller: Caller<PortfolioRead>,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<ReadinessRecord>, Problem> {
    let readiness = app::readiness::of_key(&app.ctx, &caller).await?;
    Ok(meta.single("readiness", ReadinessRecord::new(readiness, caller.key.key_index)))
}

impl ReadinessRecord {
    fn new(readiness: Readiness, key_index: u32) -> Self {
        let policy = &readiness.policy;
        let next_steps = readiness.missing().map(|code| NextStep::new(code, readiness.address.as_deref()));
        Self {
            ready: readiness.is_ready(),
            next_steps: next_steps.collect(),
            delegated: Delegated {
                ready: readiness.delegated,
                key_index,
                expires_at: (policy.expiry_s != 0).then(|| Timestamp::from_s(policy.expiry_s)),
                caps: CapsRecord::of(policy),
            },
            funded: Funded {
                ready: readiness.funded,
                usdc_balance: readiness.balance,
                reserved_usdc: readiness.reserved,
                allowance: readiness.allowance_atomic.to_string(),
            },
            provisioned: Provisioned { ready: readiness.provisioned, address: readiness.address },
        }
    }
}

impl NextStep {
    fn new(code: ErrorCode, address: Option<&str>) -> Self {
        let detail = match (code, address) {
            (ErrorCode::SmartAccountNotProvisioned, Some(address)) => {
                format!("Provision your smart account in Settings; its address will be {address}.")
            }
            (ErrorCode::WalletDelegationNotEnabled, _) => {
                "Enable this key in Settings: the account's owner signs the delegation, once.".to_owned()
            }
            (ErrorCode::InsufficientBalance, Some(address)) => {
                format!("Send USDC to your smart account {address}.")
            }
            (ErrorCode::InsufficientBalance, None) => {
                "Send USDC to your smart account once it has an address.".to_owned()
            }
            _ => code.default_detail().to_owned(),
        };
        Self { code: code.as_str(), detail }
    }
}
