//! What a person trades and signs on the site.

use domain::ErrorCode;
use domain::ids::TradeId;
use domain::trade::Side;

use super::Country;
use crate::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerOrder, PreparedAct};
use crate::sessions::Person;
use crate::trades::{self, Accepted, NewTrade};
use crate::{AppError, Ctx, PersonError};

/// Creates a trade with the person's web key.
///
/// # Errors
/// `CountryRefused` for anything but a sale.
pub async fn create_trade(
    ctx: &Ctx,
    person: &Person,
    country: Country,
    new: NewTrade,
) -> Result<Accepted, PersonError> {
    if new.draft.side.as_deref() != Some(Side::Sell.as_str()) {
        country.require_allowed()?;
    }
    Ok(trades::create(ctx, &person.caller()?, new).await?)
}

/// Prepares an act for an owner's signature.
///
/// # Errors
/// `CountryRefused` for a purchase.
pub async fn prepare_act(
    ctx: &Ctx,
    person: &Person,
    country: Country,
    request: &OwnerActRequest,
) -> Result<PreparedAct, PersonError> {
    if matches!(request, OwnerActRequest::Trade { order: OwnerOrder::Buy { .. }, .. }) {
        country.require_allowed()?;
    }
    let origin = ActOrigin::User(person.session().ip);
    Ok(owner_acts::prepare(ctx, person.user_id(), request, origin, None).await?)
}

/// Releases a held trade of the person, whichever key created it. Requires a step-up: an agent may have
/// created the trade, and a stolen session must not release it. Does nothing if the trade no longer
/// waits.
///
/// # Errors
/// `CountryRefused` for a purchase. `RESOURCE_NOT_FOUND` if the person has no such trade.
pub async fn confirm_trade(
    ctx: &Ctx,
    person: &Person,
    country: Country,
    id: TradeId,
) -> Result<(), PersonError> {
    person.require_step_up(ctx.now())?;
    let read = ctx
        .store
        .read((person.user_id(), id), |tx, (user_id, id)| Box::pin(store::trades::find(tx, *user_id, *id)));
    let trade = read.await?.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))?;
    if trade.side == Side::Buy {
        country.require_allowed()?;
    }
    // A form that was sent twice finds a trade that no longer waits.
    if trades::held_until(ctx, &trade).is_none() {
        return Ok(());
    }
    trades::confirm_as_owner(ctx, person, id).await?;
    Ok(())
}
