//! Checks open claims against the current chain state just before they are signed. Claims that
//! would be paid are sent, claims that cannot be paid at the moment wait, and claims that can never
//! pay end.

use alloy_primitives::Address;
use domain::ids::RedemptionId;
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Timestamp};
use futures::StreamExt;
use store::Tx;
use store::redemptions::Redemption;

use super::settled_block;
use crate::{AppError, Ctx};

/// The delay for a claim that was paid in a block that is not final yet.
const AWAIT_FINALITY_MS: i64 = 5_000;
/// The delay for a claim whose payment USDC rejects, because USDC is paused or the account is
/// blocked.
const BLOCKED_MS: i64 = 5 * MINUTE_MS;

/// A claim that the chain would pay, with the account, market number and outcome for the call.
pub type Sendable = (RedemptionId, (Address, u64, u8));

/// The decision about each claim.
#[derive(Debug, Default)]
pub struct ClaimDecisions {
    pub send: Vec<Sendable>,
    /// To check again, not before this time.
    pub later: Vec<(RedemptionId, Timestamp)>,
    /// Worth nothing as of this final block.
    pub spent: Vec<(RedemptionId, u64)>,
}

enum UnpaidDecision {
    Later(i64),
    Spent(u64),
}

/// Decides about claims, each with its market's number on chain.
pub async fn decide(ctx: &Ctx, claims: Vec<(Redemption, Option<u64>)>) -> Result<ClaimDecisions, AppError> {
    let now = ctx.now();
    let mut decisions = ClaimDecisions::default();
    let mut asked: Vec<Sendable> = Vec::with_capacity(claims.len());
    for (claim, number) in claims {
        match number {
            Some(number) => asked.push((claim.id, (claim.account, number, claim.outcome_index))),
            None => {
                tracing::error!(redemption.id = %claim.id, "skipped a claim: its market is not on this chain");
                decisions.later.push((claim.id, now.plus_ms(BLOCKED_MS)));
            }
        }
    }
    let positions: Vec<_> = asked.iter().map(|(_, position)| *position).collect();
    // A simulation of the whole batch, not only `redeemable`: the USDC transfer itself may fail.
    let paid = ctx.chain.simulate_redemptions(&positions).await?;
    let (send, unpaid): (Vec<_>, Vec<_>) = asked.into_iter().zip(paid).partition(|(_, paid)| *paid > 0);
    decisions.send = send.into_iter().map(|(claim, _)| claim).collect();
    if unpaid.is_empty() {
        return Ok(decisions);
    }
    let settled = settled_block(ctx).await?;
    let unpaid = futures::stream::iter(unpaid)
        .map(async |((id, position), _)| (id, decide_unpaid(ctx, position, settled).await));
    let unpaid: Vec<_> = unpaid.buffered(chain::MAX_CONCURRENT_CALLS).collect().await;
    for (id, decision) in unpaid {
        match decision? {
            UnpaidDecision::Later(ms) => decisions.later.push((id, now.plus_ms(ms))),
            UnpaidDecision::Spent(block) => decisions.spent.push((id, block)),
        }
    }
    Ok(decisions)
}

/// Decides about a claim that would not be paid. A position that is worth nothing now may have been
/// paid in a block that is reorganized away later. If it was already worth nothing in a final
/// block, it stays so.
async fn decide_unpaid(
    ctx: &Ctx,
    (account, number, outcome_index): (Address, u64, u8),
    settled: Option<u64>,
) -> Result<UnpaidDecision, AppError> {
    if ctx.chain.redeemable(account, number, outcome_index).await? > 0 {
        tracing::warn!(%account, market.number = number, outcome_index, "USDC rejects the payment of a redemption");
        return Ok(UnpaidDecision::Later(BLOCKED_MS));
    }
    let Some(block) = settled else { return Ok(UnpaidDecision::Later(AWAIT_FINALITY_MS)) };
    match ctx.chain.redeemable_at(account, number, outcome_index, block).await {
        Ok(0) => Ok(UnpaidDecision::Spent(block)),
        // Reading an old block fails if the node has deleted its state. Try again with a newer
        // block.
        Ok(_) | Err(_) => Ok(UnpaidDecision::Later(AWAIT_FINALITY_MS)),
    }
}

/// Ends claims that are worth nothing as of a final block. Usually the event that paid them has
/// ended them already. If the claim was created while that event was settled, the payment is
/// counted now. Otherwise the claim fails.
pub async fn conclude(tx: &mut Tx, spent: &[(RedemptionId, u64)], now: Timestamp) -> Result<(), AppError> {
    let settled = store::sync::find_settled(tx).await?;
    for (id, block) in spent {
        // The sync has not settled this block yet, so the paying event may still be to come.
        if settled.is_none_or(|settled| settled < *block) {
            continue;
        }
        match store::redemptions::find_uncounted_payment(tx, *id, *block).await? {
            Some(payment) => {
                store::redemptions::complete(tx, &payment, now).await?;
            }
            None => {
                let code = ErrorCode::PositionNotClaimable;
                let message = "The position no longer pays anything.";
                if store::redemptions::end_unpaid(tx, *id, code, message, now).await? {
                    tracing::warn!(redemption.id = %id, "a claim ended without a payment");
                }
            }
        }
    }
    Ok(())
}
