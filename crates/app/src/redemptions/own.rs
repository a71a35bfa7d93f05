//! The claims of a person in the web application.

use std::collections::HashSet;

use domain::ids::MarketId;
use domain::page::{MAX_PAGE, Page};
use domain::redemption::RedemptionStatus;
use store::redemptions::RedemptionListFilter;

use super::{NewClaim, claim};
use crate::portfolio::{ValuedPosition, of_person};
use crate::sessions::Person;
use crate::{AppError, Ctx};

/// Claims the person's position, or all positions that can be claimed, also if the operator has
/// revoked the web key. Positions that have a claim already keep it.
///
/// # Errors
/// `REDEMPTIONS_NOT_ENABLED` if the service pays the chosen position by itself.
/// `POSITION_NOT_CLAIMABLE` if it pays nothing.
pub async fn claim_own(ctx: &Ctx, person: &Person, chosen: Option<(MarketId, u8)>) -> Result<(), AppError> {
    let position_key = |position: &ValuedPosition| (position.held.market_id, position.held.outcome_index);
    let claimable =
        of_person(ctx, person).await?.positions.into_iter().filter(|position| position.is_claimable);
    let positions: Vec<_> = match chosen {
        Some(chosen) => vec![chosen],
        None => claimable.map(|position| position_key(&position)).collect(),
    };
    for (market_id, outcome_index) in positions {
        let (market_id, outcome_index) = (market_id.to_string(), i64::from(outcome_index));
        claim(ctx, &person.holder(), NewClaim { market_id, outcome_index, correlation_id: None }).await?;
    }
    Ok(())
}

/// Returns the positions of the person whose claims are not paid yet.
pub async fn list_claiming(ctx: &Ctx, person: &Person) -> Result<HashSet<(MarketId, u8)>, AppError> {
    let filter = RedemptionListFilter {
        statuses: vec![RedemptionStatus::Pending, RedemptionStatus::Executing],
        ..RedemptionListFilter::default()
    };
    let page = Page { limit: MAX_PAGE, after: None };
    let open = ctx.store.read((person.user_id(), filter, page), |tx, (user_id, filter, page)| {
        Box::pin(store::redemptions::list(tx, *user_id, filter, page))
    });
    Ok(open.await?.into_iter().map(|claim| (claim.market_id, claim.outcome_index)).collect())
}
