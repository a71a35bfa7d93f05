//! Checks which steps are missing before the calling key can trade.

use app::readiness::KeyReadiness;
use axum::extract::State;
use domain::{ErrorCode, Timestamp, Usdc};
use http_kit::{Caller, Meta, NoParameters, PortfolioRead, Problem, Query, Shared, Single};
use serde::Serialize;
use utoipa::ToSchema;

use super::portfolio::CapsRecord;
use crate::openapi::answers::answers;
use crate::openapi::formats::Address;

answers! {
    AccountReadinessAnswer = single("readiness", ReadinessRecord);
}

/// Account, delegation and funds, in the order in which a trade checks them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountReadiness)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessRecord {
    /// True if the key can trade now.
    ready: bool,
    provisioned: Provisioned,
    delegated: Delegated,
    funded: Funded,
    /// The next steps, in order. Empty if the key can trade.
    next_steps: Vec<NextStep>,
}

/// The smart account. It is ready if it is on chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountProvisioned)]
#[serde(rename_all = "camelCase")]
struct Provisioned {
    ready: bool,
    /// The current or future address of the account. Null if the user has no account.
    #[schema(value_type = Option<Address>)]
    address: Option<alloy_primitives::Address>,
}

/// The delegation of the key. It is ready if the account has enabled the key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountDelegated)]
#[serde(rename_all = "camelCase")]
struct Delegated {
    ready: bool,
    /// The index of the key's policy in the account.
    key_index: u32,
    /// Null if the account never enabled the key or revoked its delegation.
    expires_at: Option<Timestamp>,
    caps: CapsRecord,
}

/// The funds of the account. They are ready if the account holds USDC. Amounts are atomic-6 decimal
/// strings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountFunded)]
#[serde(rename_all = "camelCase")]
struct Funded {
    ready: bool,
    usdc_balance: Usdc,
    reserved_usdc: Usdc,
    /// The USDC that the service's contract may spend from the account. It is usually unlimited.
    #[schema(pattern = "^(0|[1-9][0-9]*)$")]
    allowance: String,
}

/// The next step.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountNextStep)]
struct NextStep {
    /// The error code that a trade would get.
    code: &'static str,
    /// Instructions to complete the step.
    detail: String,
}

/// `GET /v1/account/readiness`: works from the first moment of a key, before there is an account.
#[utoipa::path(
    get, path = "/v1/account/readiness", operation_id = "getAccountReadiness", tag = "Account",
    summary = "Check if the key can trade",
    description = "Returns the state of the account, the delegation and the funds, in the order in which a \
        trade checks them, and the next steps. Works for a new key without an account.",
    responses((status = 200, description = "The state of each requirement and the next steps.", body = AccountReadinessAnswer)),
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
    fn new(readiness: KeyReadiness, key_index: u32) -> Self {
        let policy = &readiness.policy;
        let next_steps = readiness.missing().map(|code| NextStep::new(code, readiness.address));
        Self {
            ready: readiness.is_ready(),
            next_steps: next_steps.collect(),
            delegated: Delegated {
                ready: readiness.delegated,
                key_index,
                // The contract stores 0 if the key was never enabled or its delegation was revoked.
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
    fn new(code: ErrorCode, address: Option<alloy_primitives::Address>) -> Self {
        let detail = match (code, address) {
            (ErrorCode::SmartAccountNotProvisioned, Some(address)) => {
                format!("Provision your smart account in Settings. Its address will be {address:#x}.")
            }
            (ErrorCode::WalletDelegationNotEnabled, _) => {
                "Enable this key in Settings. The account's owner signs the delegation once.".to_owned()
            }
            (ErrorCode::InsufficientBalance, Some(address)) => {
                format!("Send USDC to your smart account {address:#x}.")
            }
            (ErrorCode::InsufficientBalance, None) => {
                "Send USDC to your smart account once it has an address.".to_owned()
            }
            _ => code.default_detail().to_owned(),
        };
        Self { code: code.as_str(), detail }
    }
}
