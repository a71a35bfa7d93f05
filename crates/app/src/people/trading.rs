//! What a person trades and signs on the site.

use domain::ids::TradeId;
use domain::page::{MAX_PAGE, Page, PagePosition};
use domain::trade::Side;
use domain::{ErrorCode, Timestamp};
use store::trades::{Trade, TradeListFilter};

use super::Country;
use crate::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerOrder, PreparedAct};
use crate::sessions::Person;
use crate::trades::{self, Accepted, NewTrade};
use crate::{AppError, Ctx, PersonError};

/// The maximum number of trades in an export. A year with more is exported by the API.
const MAX_EXPORTED: usize = 10_000;

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
    let Some(held) = trades::confirmation_of(ctx, &trade) else { return Ok(()) };
    trades::confirm(ctx, &person.caller()?, &id.to_string(), &held.token).await?;
    Ok(())
}

/// Lists the person's trades from `begin` until before `end`, newest first, for a file. Requires a
/// step-up, because the file says everything about the person's money.
pub async fn list_trades_to_export(
    ctx: &Ctx,
    person: &Person,
    begin: Timestamp,
    end: Timestamp,
) -> Result<Vec<Trade>, PersonError> {
    person.require_step_up(ctx.now())?;
    let mut exported = Vec::new();
    // Newest first: begin before the first instant that is not exported.
    let mut page = Page { limit: MAX_PAGE, after: Some(PagePosition { created_at: end, id: String::new() }) };
    loop {
        let input = (person.user_id(), TradeListFilter::default(), page.clone());
        let rows = ctx.store.read(input, |tx, (user_id, filter, page)| {
            Box::pin(store::trades::list(tx, *user_id, filter, page))
        });
        let mut rows: Vec<Trade> = rows.await?.into_iter().map(|(trade, _)| trade).collect();
        let has_more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let last =
            rows.last().map(|last| PagePosition { created_at: last.created_at, id: last.id.to_string() });
        exported.extend(rows.into_iter().filter(|trade| trade.created_at >= begin));
        match last.filter(|last| has_more && last.created_at >= begin) {
            Some(last) if exported.len() < MAX_EXPORTED => page.after = Some(last),
            _ => break,
        }
    }
    exported.truncate(MAX_EXPORTED);
    Ok(exported)
}
