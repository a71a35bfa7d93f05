//! The trades of a period, for a file that a person downloads.

use domain::Timestamp;
use domain::page::{MAX_PAGE, Page, PagePosition};
use store::trades::{Trade, TradeListFilter};

use crate::sessions::Person;
use crate::{AppError, Ctx, PersonError};

/// Returns the person's trades from `begin` on and before `end`, newest first, at most `limit`.
/// Requires a step-up: the file says everything about a person's money.
pub async fn export_trades(
    ctx: &Ctx,
    person: &Person,
    (begin, end): (Timestamp, Timestamp),
    limit: usize,
) -> Result<Vec<Trade>, PersonError> {
    person.require_step_up(ctx.now())?;
    let mut exported = Vec::new();
    let mut page = Page { limit: MAX_PAGE, after: Some(PagePosition { created_at: end, id: String::new() }) };
    loop {
        let input = (person.user_id(), TradeListFilter::default(), page.clone());
        let rows = ctx.store.read(input, |tx, (user_id, filter, page)| {
            Box::pin(store::trades::list(tx, *user_id, filter, page))
        });
        let mut rows: Vec<Trade> =
            rows.await.map_err(AppError::from)?.into_iter().map(|(trade, _)| trade).collect();
        let has_more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let last = rows.last().map(|last| (last.created_at, last.id));
        exported.extend(rows.into_iter().filter(|trade| trade.created_at >= begin));
        match last.filter(|(created_at, _)| has_more && *created_at >= begin) {
            Some((created_at, id)) if exported.len() < limit => {
                page.after = Some(PagePosition { created_at, id: id.to_string() });
            }
            _ => break,
        }
    }
    exported.truncate(limit);
    Ok(exported)
}
