//! Changing how a market is listed: its words, and the thread and chapter that it is put under.

use domain::ErrorCode;
use domain::ids::MarketId;
use store::Tx;
use store::catalog::{self, Listing};

use super::{check, checked, missing};
use crate::{AppError, Ctx};

/// Changes how a market is listed. Its organization and its partner are those of its thread: they follow it there, and go
/// when it leaves. A chapter alone names its thread, and a market that changes its thread leaves its chapter.
pub async fn change_market(
    ctx: &Ctx,
    id: MarketId,
    change: impl Fn(&mut Listing) + Send + Sync + 'static,
) -> Result<Listing, AppError> {
    ctx.store
        .write((id, change), |tx, (id, change)| {
            Box::pin(async move {
                let found = catalog::lock_listing(tx, *id).await?;
                let old = found.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
                let mut listing = old.clone();
                change(&mut listing);
                place(tx, &old, &mut listing).await?;
                checked(check::listing(&listing))?;
                catalog::put_listing(tx, &listing).await?;
                Ok(listing)
            })
        })
        .await
}

async fn place(tx: &mut Tx, old: &Listing, listing: &mut Listing) -> Result<(), AppError> {
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
            return Err(AppError::field("/chapterId", "is a chapter of another thread"));
        }
    }
    let thread = match listing.thread_id {
        Some(id) => Some(catalog::find_thread(tx, id).await?.ok_or_else(|| missing("thread"))?),
        None => None,
    };
    if thread.is_some() || old.thread_id.is_some() {
        listing.organization_id = thread.as_ref().and_then(|thread| thread.organization_id);
        listing.partner_id = thread.as_ref().and_then(|thread| thread.partner_id);
    }
    Ok(())
}
