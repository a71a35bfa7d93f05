//! The payment of settled positions. A claim is a row, made by the position's owner or, where winnings are paid
//! automatically, by the payer; an executor carries it to the hub; the sync completes it from the chain's event.
//!
//! The hub pays whatever a position is worth to its holder, whoever calls and however often, so nothing can be paid twice.
//! What must be right is the bookkeeping: a claim is completed by a final event and by nothing else.

mod announcer;
mod claim;
mod judge;
mod payer;
mod settle;

use domain::redemption::Payout;
use domain::{Usdc, Wad};
use store::StoreError;

use crate::{AppError, Ctx};

pub use announcer::Announcer;
pub use claim::{Claimed, NewClaim, claim};
pub(crate) use judge::{Judged, Sendable, conclude, judge};
pub use payer::Payer;
pub(crate) use settle::settle;

/// Who claims what settled positions are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redemptions {
    /// The owners, through the API.
    #[default]
    SelfService,
    /// The service, by itself.
    Automatic,
}

/// The last block whose events have settled anything: final, and what it said is in the tables.
async fn settled_block(ctx: &Ctx) -> Result<Option<u64>, AppError> {
    let settled: Result<_, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    Ok(settled?)
}

/// What a market whose result is final pays for each outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FinalResult {
    /// WAD a token; empty where the cost is refunded.
    payouts: Vec<Wad>,
}

impl FinalResult {
    /// The result as the settled block has it; `None` where it has none.
    async fn of(ctx: &Ctx, number: u64, settled: Option<u64>) -> Result<Option<Self>, AppError> {
        let Some(block) = settled else { return Ok(None) };
        let resolution = ctx.chain.resolution_at(number, block).await?;
        Ok(resolution.map(|ended| Self { payouts: ended.payouts_wad.into_iter().map(Wad).collect() }))
    }

    fn payout(&self, outcome_index: u8) -> Payout {
        if self.payouts.is_empty() {
            return Payout::Refund;
        }
        Payout::PerToken(self.payouts.get(usize::from(outcome_index)).copied().unwrap_or(Wad::ZERO))
    }
}

/// What the chain would pay for a position now.
async fn redeemable(
    ctx: &Ctx,
    account: alloy_primitives::Address,
    number: u64,
    outcome_index: u8,
) -> Result<Usdc, AppError> {
    Ok(Usdc::from_atomic(ctx.chain.redeemable(account, number, outcome_index).await?))
}
