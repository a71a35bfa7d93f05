//! Open claims against the chain as it is now, just before they are signed: what would really be paid is sent, what cannot
//! be paid for the moment waits, and what can pay nothing for good ends.

use alloy_primitives::Address;
use domain::ids::RedemptionId;
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Timestamp};
use futures::StreamExt;
use store::Tx;
use store::redemptions::Redemption;

use super::settled_block;
use crate::{AppError, Ctx};

/// Questions to the chain that are open at once.
const CONCURRENT: usize = 16;
/// How long a claim is left alone that was paid in a block which is not final yet.
const AWAIT_FINALITY_MS: i64 = 5_000;
/// How long a claim is left alone whose payment USDC refuses: paused, or the account is blocked.
const BLOCKED_MS: i64 = 5 * MINUTE_MS;

/// A claim that the chain would pay, with what the hub is to be asked.
pub type Sendable = (RedemptionId, (Address, u64, u8));

/// What is to be done with each claim.
#[derive(Debug, Default)]
pub struct Judged {
    /// To be sent.
    pub send: Vec<Sendable>,
    /// To be looked at again, not before this time.
    pub later: Vec<(RedemptionId, Timestamp)>,
    /// Worth nothing after this final block.
    pub spent: Vec<(RedemptionId, u64)>,
}

enum Verdict {
    Later(i64),
    Spent(u64),
}

/// Judges claims, each with the hub's number of its market.
pub async fn judge(ctx: &Ctx, claims: Vec<(Redemption, Option<u64>)>) -> Result<Judged, AppError> {
    let now = ctx.now();
    let mut judged = Judged::default();
    let mut asked: Vec<Sendable> = Vec::with_capacity(claims.len());
    for (claim, number) in claims {
        match (claim.account.parse(), number) {
            (Ok(account), Some(number)) => asked.push((claim.id, (account, number, claim.outcome_index))),
            _ => {
                tracing::error!(redemption.id = %claim.id, "a claim's market is not on this chain; passed over");
                judged.later.push((claim.id, now.plus_ms(BLOCKED_MS)));
            }
        }
    }
    let positions: Vec<_> = asked.iter().map(|(_, position)| *position).collect();
    let paid = ctx.chain.simulate_redemptions(&positions).await?;
    let (send, unpaid): (Vec<_>, Vec<_>) = asked.into_iter().zip(paid).partition(|(_, paid)| *paid > 0);
    judged.send = send.into_iter().map(|(claim, _)| claim).collect();
    if unpaid.is_empty() {
        return Ok(judged);
    }
    let settled = settled_block(ctx).await?;
    let verdicts = futures::stream::iter(unpaid)
        .map(async |((id, position), _)| (id, unpaid_verdict(ctx, position, settled).await));
    let verdicts: Vec<_> = verdicts.buffered(CONCURRENT).collect().await;
    for (id, verdict) in verdicts {
        match verdict? {
            Verdict::Later(ms) => judged.later.push((id, now.plus_ms(ms))),
            Verdict::Spent(block) => judged.spent.push((id, block)),
        }
    }
    Ok(judged)
}

/// Why nothing would be paid. What is worth nothing now may have been paid in a block that is still to be abandoned; what
/// was worth nothing in a final block already stays so.
async fn unpaid_verdict(
    ctx: &Ctx,
    (account, number, outcome_index): (Address, u64, u8),
    settled: Option<u64>,
) -> Result<Verdict, AppError> {
    if ctx.chain.redeemable(account, number, outcome_index).await? > 0 {
        tracing::warn!(%account, market.number = number, outcome_index, "USDC refuses the payment of a redemption");
        return Ok(Verdict::Later(BLOCKED_MS));
    }
    let Some(block) = settled else { return Ok(Verdict::Later(AWAIT_FINALITY_MS)) };
    match ctx.chain.redeemable_at(account, number, outcome_index, block).await {
        Ok(0) => Ok(Verdict::Spent(block)),
        // A node that no longer has that block's state will have the next one's.
        Ok(_) | Err(_) => Ok(Verdict::Later(AWAIT_FINALITY_MS)),
    }
}

/// Ends the claims that are worth nothing after a final block. Mostly the event that paid them has ended them by then; one
/// that was made while that event was settled counts it now. The others have failed.
pub async fn conclude(tx: &mut Tx, spent: &[(RedemptionId, u64)], now: Timestamp) -> Result<(), AppError> {
    let settled = store::sync::find_settled(tx).await?;
    for (id, block) in spent {
        if settled.is_none_or(|settled| settled < *block) {
            continue;
        }
        match store::redemptions::find_uncounted_payment(tx, *id, *block).await? {
            Some(payment) => {
                store::redemptions::complete(tx, &payment, now).await?;
            }
            None => {
                let code = ErrorCode::PositionNotClaimable;
                let message = "The position pays nothing any more.";
                if store::redemptions::end_unpaid(tx, *id, code, message, now).await? {
                    tracing::warn!(redemption.id = %id, "a claim has ended without a payment");
                }
            }
        }
    }
    Ok(())
}
