//! Changes a market's listing: its texts, thread and chapter.

use domain::ErrorCode;
use domain::ids::MarketId;
use store::Tx;
use store::catalog::{self, Listing};

use super::{check, checked, missing, names, note_change, owners_of};
use crate::{AppError, Ctx};

/// Changes a market's listing.
///
/// The organization and partner always come from the thread. A new chapter implies its thread. A
/// market that moves to another thread leaves its chapter. There, people must not take its question
/// for another one.
pub async fn change_market(
    ctx: &Ctx,
    id: MarketId,
    change: impl Fn(&mut Listing) + Send + Sync + 'static,
) -> Result<Listing, AppError> {
    ctx.store
        .try_write((id, change), |tx, (id, change)| {
            Box::pin(async move {
                let found = catalog::lock_listing(tx, *id).await?;
                let old = found.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
                let mut listing = old.clone();
                change(&mut listing);
                move_to_thread(tx, &old, &mut listing).await?;
                checked(check::listing(&listing))?;
                catalog::put_listing(tx, &listing).await?;
                names::check_moved(tx, *id, old.thread_id, listing.thread_id).await?;
                note_change(tx, "market.update", "market", id, &old, &listing);
                Ok(listing)
            })
        })
        .await
}

/// Writes a market's listing, with the organization and partner that its thread has now.
pub(crate) async fn put_market(tx: &mut Tx, mut listing: Listing) -> Result<(), AppError> {
    let old = catalog::lock_listing(tx, listing.market_id).await?;
    (listing.organization_id, listing.partner_id) = owners_of(tx, listing.thread_id).await?;
    catalog::put_listing(tx, &listing).await?;
    names::check_moved(tx, listing.market_id, old.and_then(|old| old.thread_id), listing.thread_id).await
}

async fn move_to_thread(tx: &mut Tx, old: &Listing, listing: &mut Listing) -> Result<(), AppError> {
    if listing.thread_id != old.thread_id && listing.chapter_id == old.chapter_id {
        listing.chapter_id = None;
    }
    if let Some(id) = &listing.chapter_id {
        let chapter = catalog::find_chapter(tx, id).await?.ok_or_else(|| missing("chapter"))?;
        let chapter_changed = listing.chapter_id != old.chapter_id;
        if chapter_changed && listing.thread_id == old.thread_id {
            listing.thread_id = Some(chapter.thread_id);
        }
        if listing.thread_id != Some(chapter.thread_id) {
            return Err(AppError::field("/chapterId", "must be a chapter of the same thread"));
        }
    }
    if listing.thread_id.is_some() || old.thread_id.is_some() {
        (listing.organization_id, listing.partner_id) = owners_of(tx, listing.thread_id).await?;
    }
    Ok(())
}
