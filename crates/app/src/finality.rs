//! When a block counts as final: no later block takes back what it says.

use crate::{AppError, Ctx};

/// What makes a block final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Finality {
    /// Its depth below the newest block.
    #[default]
    Depth,
    /// Its depth, and that the chain itself marks it as final (the `finalized` tag).
    Finalized,
}

/// The newest final block while `head` is the chain's newest; `None` if no block is final yet.
///
/// # Errors
/// With [`Finality::Finalized`]: what a read gives, if the node does not answer or does not know the tag.
pub async fn final_block(ctx: &Ctx, head: u64) -> Result<Option<u64>, AppError> {
    let Some(deep) = (head + 1).checked_sub(ctx.confirmations()) else { return Ok(None) };
    match ctx.config.finality {
        Finality::Depth => Ok(Some(deep)),
        Finality::Finalized => Ok(ctx.chain.finalized().await?.map(|finalized| finalized.number.min(deep))),
    }
}

/// The depth that makes a block final if none is configured. An embedded chain, and a developer's node, never reorganise by
/// themselves.
pub const fn default_confirmations(chain_id: u64) -> u64 {
    match chain_id {
        31_337 | 1_337 => 1,
        1 => 12,
        137 => 64,
        10 | 8_453 | 42_161 => 20,
        _ => 6,
    }
}
