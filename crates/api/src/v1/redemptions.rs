//! Claims payouts of settled positions, and lists the caller's claims.

use app::redemptions::{ClaimResult, NewClaim};
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::ids::{CorrelationId, MarketId, RedemptionId};
use domain::page::PagePosition;
use domain::redemption::RedemptionStatus;
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use http_kit::{
    Body, Caller, JsonBody, List, Meta, NoParameters, Paging, Parameters, PathId, Problem, Query, RawQuery,
    Shared, Single, Traceparent, TradesRead, TradesWrite,
};
use protocol::document::Members;
use serde::{Deserialize, Serialize};
use store::StoreError;
use store::redemptions::{Redemption, RedemptionListFilter};
use utoipa::ToSchema;

use crate::openapi::answers::answers;
use crate::openapi::formats::TxHash;

answers! {
    RedemptionAnswer = single("redemption", RedemptionRecord);
    RedemptionList = list(RedemptionRecord);
}

/// A claim to create. Unknown members are rejected.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CreateRedemptionRequest)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimBody {
    /// The id of a resolved or cancelled market.
    #[schema(required, value_type = MarketId)]
    market_id: Option<String>,
    /// The index of the outcome. The first index is 0.
    #[schema(required, value_type = i64, minimum = 0)]
    outcome_index: Option<i64>,
}

impl JsonBody for ClaimBody {
    fn read(members: &mut Members<'_>) -> Self {
        let market_id = members.text("marketId");
        let outcome_index = members.integer("outcomeIndex");
        Self {
            market_id: members.required("marketId", market_id, "the id of a market"),
            outcome_index: members.required("outcomeIndex", outcome_index, "an integer, 0 for the first"),
        }
    }
}

impl ClaimBody {
    /// Converts the body to a claim. The required members are present, or the body would have been
    /// rejected.
    fn into_claim(self, correlation_id: Option<CorrelationId>) -> NewClaim {
        let (market_id, outcome_index) =
            (self.market_id.unwrap_or_default(), self.outcome_index.unwrap_or_default());
        NewClaim { market_id, outcome_index, correlation_id }
    }
}

/// The current state of a claim. Values that a later status sets are null until then.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Redemption)]
#[serde(rename_all = "camelCase")]
pub struct RedemptionRecord {
    id: RedemptionId,
    market_id: MarketId,
    outcome_index: u8,
    status: RedemptionStatus,
    /// The expected payout or, once the claim is completed, the amount that was paid, in atomic-6.
    amount: Usdc,
    /// The outcome tokens that are redeemed, in WAD.
    tokens: Wad,
    #[schema(value_type = Option<TxHash>)]
    tx_hash: Option<alloy_primitives::B256>,
    correlation_id: CorrelationId,
    /// The error code of a failed claim.
    error_code: Option<&'static str>,
    error_message: Option<String>,
    created_at: Timestamp,
    completed_at: Option<Timestamp>,
}

impl From<Redemption> for RedemptionRecord {
    fn from(claim: Redemption) -> Self {
        let is_completed = claim.status == RedemptionStatus::Completed;
        // A claim that was made again may already have been paid in part.
        let expected = claim.paid.checked_add(claim.expected).unwrap_or(claim.expected);
        let (error_code, error_message) =
            claim.failure.map(|(code, message)| (code.as_str(), message)).unzip();
        Self {
            id: claim.id,
            market_id: claim.market_id,
            outcome_index: claim.outcome_index,
            status: claim.status,
            amount: if is_completed { claim.paid } else { expected },
            tokens: claim.tokens,
            tx_hash: claim.tx_hash,
            correlation_id: claim.correlation_id,
            error_code,
            error_message,
            created_at: claim.created_at,
            // Failed claims have ended too, but are not completed.
            completed_at: claim.ended_at.filter(|_| is_completed),
        }
    }
}

/// An extractor that succeeds only if owners may claim payouts themselves. If every payout is
/// automatic, claims are rejected before the body is read.
#[derive(Debug)]
pub struct SelfService;

impl FromRequestParts<Shared> for SelfService {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        if app::redemptions::accepts_claims(&app.ctx) {
            Ok(Self)
        } else {
            Err(Problem::new(ErrorCode::RedemptionsNotEnabled))
        }
    }
}

/// `POST /v1/redemptions`: claims a winning outcome, or the refund of a cancelled market.
///
/// - 201: a new claim, `pending`.
/// - 200: the current claim of the position. A failed claim is retried and `pending` again.
#[utoipa::path(
    post, path = "/v1/redemptions", operation_id = "createRedemption", tag = "Redemptions", summary = "Claim a settled position",
    description = "Claims a winning outcome, or the refund of a cancelled market. The claim is paid on \
        chain shortly afterwards, and the portfolio then shows the USDC. A position has one claim: \
        claiming it again returns that claim, and retries it if it failed.",
    params(
        ("traceparent" = Option<String>, Header,
            example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            description = "Your W3C trace context. Its trace id becomes the claim's correlationId. Ignored \
                if it is malformed."),
    ),
    request_body(content = ClaimBody, description = "The position."),
    responses(
        (status = 201, description = "A new claim, pending.", body = RedemptionAnswer),
        (status = 200, description = "The position's claim as it is now.", body = RedemptionAnswer),
    ),
    extensions(("x-error-codes" = json!(["REDEMPTIONS_NOT_ENABLED", "MARKET_NOT_FOUND", "CHAIN_NOT_SUPPORTED",
        "OUTCOME_INDEX_INVALID", "SMART_ACCOUNT_NOT_PROVISIONED", "POSITION_NOT_CLAIMABLE"]))),
)]
pub async fn create(
    State(app): State<Shared>,
    caller: Caller<TradesWrite>,
    _: SelfService,
    _: Query<NoParameters>,
    Traceparent(correlation_id): Traceparent,
    meta: Meta,
    body: Body<ClaimBody>,
) -> Result<Response, Problem> {
    let new = body.value.into_claim(correlation_id);
    let caller = caller.into_inner();
    // In its own task, so that a client that hangs up cannot interrupt the claim.
    let claimed = app.mutate(|app| async move { app::redemptions::claim(&app.ctx, &caller, new).await });
    let (status, claim) = match claimed.await? {
        ClaimResult::Created(claim) => (StatusCode::CREATED, claim),
        ClaimResult::Existing(claim) => (StatusCode::OK, claim),
    };
    Ok((status, meta.single("redemption", RedemptionRecord::from(claim))).into_response())
}

/// The parameters `status` (comma-separated), `marketId`, `limit` (default 20) and `cursor`.
#[derive(Debug)]
pub struct RedemptionsQuery {
    filter: RedemptionListFilter,
    paging: Paging,
}

impl Parameters for RedemptionsQuery {
    const NAMES: &'static [&'static str] = &["status", "marketId", "limit", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let filter = RedemptionListFilter {
            statuses: given.list("status", "must be a comma-separated list of redemption statuses", |word| {
                word.parse().ok()
            }),
            market_id: given.parsed("marketId", "must be a UUID"),
        };
        Some(Self { filter, paging: given.paging()? })
    }
}

/// `GET /v1/redemptions`: the claims of the key's user, newest first.
#[utoipa::path(
    get, path = "/v1/redemptions", operation_id = "listRedemptions", tag = "Redemptions", summary = "List your claims",
    description = "The claims of the key's user, newest first. If winnings are paid automatically, the \
        service created them.",
    params(
        ("status" = Option<Vec<RedemptionStatus>>, Query, style = Form, explode = false,
            description = "Claims of these statuses.", example = json!(["pending", "executing"])),
        ("marketId" = Option<MarketId>, Query, description = "Claims in this market."),
    ),
    responses((status = 200, description = "A page of claims.", body = RedemptionList)),
)]
pub async fn list(
    State(app): State<Shared>,
    caller: Caller<TradesRead>,
    Query(query): Query<RedemptionsQuery>,
    meta: Meta,
) -> Result<List<RedemptionRecord>, Problem> {
    let RedemptionsQuery { filter, paging } = query;
    let input = (caller.user_id(), filter, paging.page.clone());
    let listed: Result<_, StoreError> = app
        .ctx
        .store
        .read(input, |tx, (user_id, filter, page)| {
            Box::pin(store::redemptions::list(tx, *user_id, filter, page))
        })
        .await;
    let (rows, pagination) = paging.cut(&app.cursor, listed?, position);
    Ok(meta.list(rows.into_iter().map(RedemptionRecord::from).collect(), pagination))
}

/// `GET /v1/redemptions/{id}`: one claim. Another user's claim is not there.
#[utoipa::path(
    get, path = "/v1/redemptions/{id}", operation_id = "getRedemption", tag = "Redemptions", summary = "Read one claim",
    description = "The current state of the claim. Another user's claim is 404.",
    params(("id" = RedemptionId, Path, description = "The claim's id.")),
    responses((status = 200, description = "The claim.", body = RedemptionAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    caller: Caller<TradesRead>,
    id: PathId,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<RedemptionRecord>, Problem> {
    let id: RedemptionId = id.parse()?;
    let found: Result<Option<Redemption>, StoreError> = app
        .ctx
        .store
        .read((caller.user_id(), id), |tx, (user_id, id)| {
            Box::pin(store::redemptions::find(tx, *user_id, *id))
        })
        .await;
    Ok(meta.single("redemption", found?.ok_or_else(Problem::not_found)?.into()))
}

fn position(claim: &Redemption) -> PagePosition {
    PagePosition { created_at: claim.created_at, id: claim.id.to_string() }
}
