//! Payment of settled positions. A claim is a row, created by the position's owner or, if payment
//! is automatic, by the payer. An executor sends it, and the sync completes it from the contract's
//! event.
//!
//! The contract pays a position to its holder, no matter who calls it or how often, so nothing can
//! be paid twice. Only the bookkeeping can be wrong. So a claim is completed only by a final event.

mod announcer;
mod claim;
mod decision;
mod own;
mod payer;

use domain::{Usdc, Wad};

use crate::config::Redemptions;
use crate::{AppError, Ctx};

pub use announcer::Announcer;
pub use claim::{ClaimResult, NewClaim, claim};
pub(crate) use decision::{ClaimDecisions, Sendable, conclude, decide};
pub use own::{claim_own, list_claiming};
pub use payer::Payer;

/// Reports whether holders may claim: always if they are not paid automatically, else only what is
/// below the minimum of the automatic payment.
pub fn accepts_claims(ctx: &Ctx) -> bool {
    ctx.config.redemptions == Redemptions::SelfService || ctx.config.min_claim > Usdc::ZERO
}

/// Returns the last settled block: it is final, and its events are in the tables.
async fn settled_block(ctx: &Ctx) -> Result<Option<u64>, AppError> {
    Ok(ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await?)
}

/// The final payouts of a market.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FinalResult {
    /// WAD of USDC per token.
    payouts: Vec<Wad>,
}

impl FinalResult {
    /// Returns the result in the settled block. `None` if it has none yet.
    async fn of(ctx: &Ctx, number: u64, settled: Option<u64>) -> Result<Option<Self>, AppError> {
        let Some(block) = settled else { return Ok(None) };
        let resolution = ctx.chain.resolution_at(number, block).await?;
        Ok(resolution.map(|payouts| Self { payouts: payouts.into_iter().map(Wad).collect() }))
    }

    fn payout(&self, outcome_index: u8) -> Wad {
        self.payouts.get(usize::from(outcome_index)).copied().unwrap_or(Wad::ZERO)
    }
}

/// Returns the amount that the chain would pay for a position now.
async fn redeemable(
    ctx: &Ctx,
    account: alloy_primitives::Address,
    number: u64,
    outcome_index: u8,
) -> Result<Usdc, AppError> {
    Ok(Usdc::from_atomic(ctx.chain.redeemable(account, number, outcome_index).await?))
}
