//! The sandbox: clients of a test environment provoke outcomes of trades by name, so that they can
//! test how they handle them.
//!
//! Creation asks [`scenario_of`] once. A scenario then rejects the request with the error of the real
//! condition, or changes the trade so that the ordinary machinery brings about its outcome. Executors
//! of a sandbox have the [`SandboxCheck`], which lets such trades pass the risk engine. Nothing else
//! knows of scenarios. They are read from the trade's own metadata, so they survive a crash.

mod check;
mod intent;
mod rejection;

use alloy_primitives::U256;
use domain::sandbox::Scenario;
use domain::trade::{State, TradeRequest};
use domain::{ErrorCode, Timestamp, Wad};
use store::StoreError;
use store::trades::Trade;

pub use self::check::SandboxCheck;
use self::rejection::rejection;
use crate::caller::Caller;
use crate::process::desk::Refused;
use crate::{AppError, Ctx};

/// Returns the scenario that a request names. `None` outside of a sandbox.
///
/// # Errors
/// `VALIDATION_FAILED` for an unknown name.
pub(super) fn scenario_of(ctx: &Ctx, request: &TradeRequest) -> Result<Option<Scenario>, AppError> {
    if !ctx.config.sandbox {
        return Ok(None);
    }
    Scenario::find(&request.metadata).map_err(|error| AppError::validation(&[error]))
}

/// Rejects a request that has passed the checks before its transaction, or changes the trade that it
/// would create.
pub(super) async fn apply(
    ctx: &Ctx,
    caller: &Caller,
    request: &TradeRequest,
    chain_market_id: u64,
    scenario: Scenario,
    trade: &mut Trade,
) -> Result<(), Refused> {
    match scenario {
        Scenario::Reject(code) => return Err(rejection(caller, code, trade)),
        Scenario::Fail(code) => {
            let held = match code {
                ErrorCode::InsufficientBalance => ctx
                    .chain
                    .position(trade.account, chain_market_id, trade.outcome_index)
                    .await
                    .map_err(AppError::from)?,
                _ => U256::ZERO,
            };
            intent::make_impossible(trade, code, Wad(held))?;
        }
        Scenario::Slow { seconds } => {
            let start = trade.held_until.unwrap_or(trade.created_at).plus_ms(i64::from(seconds) * 1_000);
            trade.deadline = deadline_from(ctx, request, start);
        }
        Scenario::Hold => {
            let expires_at = trade.created_at.plus_ms(ctx.config.confirmation_window_ms);
            trade.held_until = Some(expires_at);
            trade.state = State::PendingConfirmation { expires_at };
            trade.deadline = deadline_from(ctx, request, expires_at);
        }
        Scenario::Risk(_) | Scenario::Lose => {}
    }
    Ok(())
}

/// Returns the deadline of a trade that is not executed before `start`.
fn deadline_from(ctx: &Ctx, request: &TradeRequest, start: Timestamp) -> Timestamp {
    let lifetime = start.plus_ms(ctx.config.intent_lifetime_ms);
    request.deadline.map_or(lifetime, |deadline| deadline.min(lifetime))
}

/// Loses the answer about a trade that was created, if the scenario says so.
pub(super) fn answer(scenario: Option<Scenario>) -> Result<(), Refused> {
    match scenario {
        Some(Scenario::Lose) => {
            Err(Refused::Lost(StoreError::CommitUnknown("the sandbox lost the answer".to_owned())))
        }
        _ => Ok(()),
    }
}
