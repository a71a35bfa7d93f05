//! The check of trades before they are signed, in a sandbox.

use async_trait::async_trait;
use domain::sandbox::Scenario;
use domain::{ErrorCode, Usdc};
use store::trades::Trade;

use super::intent::other_index;
use crate::trades::risk::{Candidate, RiskCheck, RiskDecision, TradeCheck};
use crate::{AppError, Ctx};

/// Decides about the trades with a scenario, and leaves the others to the risk engine.
#[derive(Debug, Default)]
pub struct SandboxCheck;

#[async_trait]
impl TradeCheck for SandboxCheck {
    async fn check(&self, ctx: &Ctx, trades: &[Candidate]) -> Result<Vec<RiskDecision>, AppError> {
        let mut decisions = Vec::with_capacity(trades.len());
        let mut others = Vec::with_capacity(trades.len());
        for candidate in trades {
            let decision = decide(ctx, &candidate.0).await;
            if decision.is_none() {
                others.push(candidate.clone());
            }
            decisions.push(decision);
        }
        let mut checked = RiskCheck.check(ctx, &others).await?.into_iter();
        let decisions = decisions.into_iter().map(|decision| decision.or_else(|| checked.next()));
        Ok(decisions.map(|decision| decision.unwrap_or(RiskDecision::Later)).collect())
    }
}

/// Returns the decision about a trade. `None` if the risk engine decides.
async fn decide(ctx: &Ctx, trade: &Trade) -> Option<RiskDecision> {
    let now = ctx.now();
    // A trade from before the sandbox was switched on may have any metadata.
    let scenario = Scenario::find(&trade.metadata).ok().flatten()?;
    if trade.deadline <= now {
        return None;
    }
    match scenario {
        Scenario::Fail(code) => {
            let key_index = match code {
                ErrorCode::WalletDelegationNotEnabled => other_index(trade.key_index),
                _ => trade.key_index,
            };
            Some(match ctx.chain.policy(trade.account, key_index).await {
                Ok(policy) => RiskDecision::Send { highest_nonce: policy.nonce_top, usdc: Usdc::ZERO },
                Err(_) => RiskDecision::Later,
            })
        }
        Scenario::Risk(reason) => Some(RiskDecision::Reject(reason)),
        Scenario::Slow { seconds } => {
            let start = trade.created_at.plus_ms(i64::from(seconds) * 1_000);
            (now < start).then_some(RiskDecision::Later)
        }
        Scenario::Reject(_) | Scenario::Hold | Scenario::Lose => None,
    }
}
