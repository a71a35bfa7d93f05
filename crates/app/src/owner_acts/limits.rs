//! Limits of the acts whose gas the service pays: otherwise anyone could empty a lane's key.

use alloy_primitives::Address;
use domain::ids::UserId;
use domain::time::DAY_MS;
use domain::{ErrorCode, Timestamp, Usdc};
use store::Tx;

use crate::{AppError, Ctx, accounts};

/// The initiator of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActOrigin {
    /// The user, within the limits.
    User,
    /// The operator, who pays for the act and has no limits.
    Operator,
}

/// Rejects an act of an account that holds too little for the service to pay its gas.
pub(super) async fn check_balance(ctx: &Ctx, origin: ActOrigin, account: Address) -> Result<(), AppError> {
    let minimum = ctx.config.owner_acts.min_balance;
    if origin == ActOrigin::Operator || minimum == Usdc::ZERO {
        return Ok(());
    }
    let balance = accounts::balance_of(ctx, account).await?;
    if balance >= minimum {
        return Ok(());
    }
    Err(AppError::new(ErrorCode::InsufficientBalance)
        .detail("Deposit USDC first: the service pays the gas only for accounts that hold some.")
        .with("requiredUsdc", minimum.to_string())
        .with("availableUsdc", balance.to_string()))
}

/// Rejects an act of a user who has signed the maximum number of acts within 24 hours.
pub(super) async fn check_count(
    tx: &mut Tx,
    origin: ActOrigin,
    user_id: UserId,
    per_day: u32,
    now: Timestamp,
) -> Result<(), AppError> {
    if origin == ActOrigin::Operator {
        return Ok(());
    }
    let refuse = |retry_at: Timestamp| {
        let seconds = u32::try_from(retry_at.since_ms(now) / 1_000 + 1).unwrap_or(1);
        Err(AppError::new(ErrorCode::RateLimitExceeded)
            .detail(format!("The service sends at most {per_day} acts of a user within 24 hours."))
            .retry_after_s(seconds))
    };
    if per_day == 0 {
        return refuse(now.plus_ms(DAY_MS));
    }
    let counted = store::owner_acts::find_nth_last_signed(tx, user_id, per_day).await?;
    match counted.map(|at| at.plus_ms(DAY_MS)) {
        Some(free_at) if free_at > now => refuse(free_at),
        _ => Ok(()),
    }
}
