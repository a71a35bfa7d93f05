//! Reads the market or the thread that a path or a URL names. A malformed id is an unknown one.

use std::sync::Arc;

use app::{AppError, Ctx};
use domain::ids::{MarketId, ThreadId};
use store::StoreError;
use store::markets::{Market, Outcome};
use store::public::ThreadRow;

/// Returns the market with this id and its outcomes, if it exists on chain.
pub async fn find_market(ctx: &Ctx, id: &str) -> Result<Option<(Market, Vec<Outcome>)>, AppError> {
    let Ok(id) = id.parse::<MarketId>() else { return Ok(None) };
    Ok(app::markets::find(ctx, id).await?.map(Arc::unwrap_or_clone))
}

/// Returns the thread with this id and its totals.
pub async fn find_thread(ctx: &Ctx, id: &str) -> Result<Option<ThreadRow>, StoreError> {
    let Ok(id) = id.parse::<ThreadId>() else { return Ok(None) };
    ctx.store.read(id, |tx, id| Box::pin(store::public::get_thread(tx, *id))).await
}
