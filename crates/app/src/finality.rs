//! Finality: the depth after which a block is never taken back.

use crate::config::Finality;
use crate::{AppError, Ctx};

/// Returns the newest final block when `head` is the chain's newest. `None` if no block is final
/// yet.
///
/// # Errors
/// With [`Finality::Finalized`], if the node does not respond or does not support the tag.
pub async fn final_block(ctx: &Ctx, head: u64) -> Result<Option<u64>, AppError> {
    let Some(deep) = (head + 1).checked_sub(ctx.confirmations()) else { return Ok(None) };
    match ctx.config.finality {
        Finality::Depth => Ok(Some(deep)),
        Finality::Finalized => Ok(ctx.chain.finalized().await?.map(|finalized| finalized.number.min(deep))),
    }
}
