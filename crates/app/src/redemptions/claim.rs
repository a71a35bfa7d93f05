//! Claims settled positions. Each position has one claim, and a repeated request returns it. A
//! failed claim is checked again and reopened in the same row.

use domain::ids::{CorrelationId, MarketId, RedemptionId};
use domain::key::Scope;
use domain::redemption::{self, RedemptionStatus};
use domain::{ErrorCode, Usdc, Wad};
use store::StoreError;
use store::markets::Market;
use store::redemptions::{ClaimRetry, Redemption};

use super::{FinalResult, redeemable, settled_block};
use crate::accounts::account_of;
use crate::caller::Caller;
use crate::config::Redemptions;
use crate::{AppError, Ctx, Submission, markets, minimum};

/// A request to claim, before any check.
#[derive(Debug, Clone)]
pub struct NewClaim {
    /// As sent.
    pub market_id: String,
    /// As sent.
    pub outcome_index: i64,
    /// The correlation id from the client's trace context.
    pub correlation_id: Option<CorrelationId>,
}

/// The result of a request.
#[derive(Debug)]
pub enum ClaimResult {
    Created(Redemption),
    /// The position's existing claim in its current state.
    Existing(Redemption),
}

/// The reason why no claim was created.
enum Refused {
    Because(AppError),
    /// Another request was faster.
    Raced,
    /// The commit's result is unknown: the claim may have been created.
    Lost(StoreError),
}

impl From<AppError> for Refused {
    fn from(error: AppError) -> Self {
        Self::Because(error)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::CommitUnknown(_) => Self::Lost(error),
            _ => Self::Because(error.into()),
        }
    }
}

/// Validates a request and creates its claim, unless there is one.
pub async fn claim(ctx: &Ctx, caller: &Caller, new: NewClaim) -> Result<ClaimResult, AppError> {
    let not_submitted = |error: AppError| error.submission(Submission::NotSubmitted);
    caller.require(Scope::TradesWrite).map_err(not_submitted)?;
    ctx.process.switches.check_new_claim().map_err(not_submitted)?;
    let (rows, number) = markets::get(ctx, &new.market_id).await.map_err(not_submitted)?;
    let (market, outcomes) = rows.as_ref();
    let outcome_index = markets::outcome_of(outcomes.len(), new.outcome_index).map_err(not_submitted)?;
    let existing = find(ctx, caller, market.id, outcome_index).await.map_err(not_submitted)?;
    if let Some(existing) = &existing
        && existing.status != RedemptionStatus::Failed
    {
        if ctx.config.redemptions == Redemptions::Automatic && existing.key_id.is_none() {
            return Err(not_submitted(AppError::new(ErrorCode::RedemptionsNotEnabled)));
        }
        return Ok(ClaimResult::Existing(existing.clone()));
    }
    // The claim may be stored after this point.
    let unknown = |error: AppError| error.submission(Submission::Unknown);
    let is_new = match make(ctx, caller, &new, (market, number, outcome_index), existing.as_ref()).await {
        Ok(()) => existing.is_none(),
        Err(Refused::Raced) => false,
        Err(Refused::Because(error)) => {
            // A concurrent request may have claimed the position, and it may already be paid. Then
            // return that claim.
            let raced = find(ctx, caller, market.id, outcome_index).await.map_err(unknown)?;
            return match raced.filter(|claim| {
                error.code == ErrorCode::PositionNotClaimable && Some(claim) != existing.as_ref()
            }) {
                Some(claim) => Ok(ClaimResult::Existing(claim)),
                None => Err(not_submitted(crate::nodes::of_right_chain(ctx, error).await)),
            };
        }
        Err(Refused::Lost(error)) => return Err(unknown(error.into())),
    };
    let made = find(ctx, caller, market.id, outcome_index).await.map_err(unknown)?;
    let made = made.ok_or_else(|| unknown(AppError::new(ErrorCode::InternalError)))?;
    ctx.wake.executor.notify_waiters();
    Ok(if is_new { ClaimResult::Created(made) } else { ClaimResult::Existing(made) })
}

async fn find(
    ctx: &Ctx,
    caller: &Caller,
    market_id: MarketId,
    outcome_index: u8,
) -> Result<Option<Redemption>, AppError> {
    Ok(ctx
        .store
        .read((caller.user_id(), market_id, outcome_index), |tx, (user_id, market_id, index)| {
            Box::pin(store::redemptions::find_of_position(tx, *user_id, *market_id, *index))
        })
        .await?)
}

/// Runs all checks and writes the claim.
async fn make(
    ctx: &Ctx,
    caller: &Caller,
    new: &NewClaim,
    (market, number, outcome_index): (&Market, u64, u8),
    ended: Option<&Redemption>,
) -> Result<(), Refused> {
    let address = account_of(ctx, caller.user_id()).await?.address;
    let state = ctx.chain.account_state(address, caller.key.key_index).await.map_err(AppError::from)?;
    if !state.provisioned {
        return Err(AppError::new(ErrorCode::SmartAccountNotProvisioned).into());
    }
    let result = FinalResult::of(ctx, number, settled_block(ctx).await?).await?;
    let payout = result.map(|result| result.payout(outcome_index));
    let worth = redeemable(ctx, address, number, outcome_index).await?;
    // After the worth: if somebody redeems the position in between, it has no tokens.
    let held = ctx.chain.position(address, number, outcome_index).await.map_err(AppError::from)?;
    if ctx.config.redemptions == Redemptions::Automatic && !minimum::is_claimable(ctx, worth) {
        return Err(AppError::new(ErrorCode::RedemptionsNotEnabled).into());
    }
    let expected = redemption::check_claim(payout, Wad(held), worth).map_err(|reason| {
        AppError::new(ErrorCode::PositionNotClaimable)
            .detail(reason.detail())
            .with("reason", reason.as_str())
            .with("marketStatus", market.status_at(ctx.now()).as_str())
    })?;
    let (tokens, now) = (Wad(held), ctx.now());
    let written = match ended.and_then(|claim| Some((claim.id, claim.ended_at?))) {
        Some((id, ended_at)) => {
            let again = ClaimRetry { id, ended_at, expected, tokens };
            ctx.write_of_user(caller.user_id(), (again, now), |tx, (again, now)| {
                Box::pin(store::redemptions::reopen(tx, again, *now))
            })
            .await?
        }
        None => {
            let id = RedemptionId(ctx.uuid());
            let claim = Redemption {
                id,
                user_id: caller.user_id(),
                key_id: Some(caller.key.id),
                account: address,
                market_id: market.id,
                outcome_index,
                correlation_id: new.correlation_id.unwrap_or(CorrelationId(id.0.as_u128())),
                status: RedemptionStatus::Pending,
                tokens,
                expected,
                paid: Usdc::ZERO,
                tx_hash: None,
                failure: None,
                batch_id: None,
                created_at: now,
                updated_at: now,
                ended_at: None,
            };
            ctx.write_of_user(claim.user_id, claim, |tx, claim| {
                Box::pin(store::redemptions::insert(tx, claim))
            })
            .await?
        }
    };
    if written { Ok(()) } else { Err(Refused::Raced) }
}
