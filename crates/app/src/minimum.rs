//! The minimum trade and claim. Below them, gas costs the operator more than the amount is worth.

use chain::{ChainError, Revert};
use domain::{ErrorCode, Usdc};

use crate::{AppError, Ctx};

/// Rejects a trade below the minimum.
pub(crate) fn check_trade(ctx: &Ctx, usdc: Usdc) -> Result<(), AppError> {
    check(ctx.config.min_trade, usdc)
}

/// Rejects a claim below the minimum.
pub(crate) fn check_claim(ctx: &Ctx, usdc: Usdc) -> Result<(), AppError> {
    check(ctx.config.min_claim, usdc)
}

/// Converts an error of a quote. An amount so small that nothing would move is below any minimum.
pub(crate) fn refused_quote(ctx: &Ctx, error: ChainError) -> AppError {
    match error {
        ChainError::Reverted(Revert::AmountZero) => too_small(ctx.config.min_trade).caused_by(error),
        error => error.into(),
    }
}

fn check(minimum: Usdc, usdc: Usdc) -> Result<(), AppError> {
    if usdc == Usdc::ZERO || usdc < minimum { Err(too_small(minimum)) } else { Ok(()) }
}

fn too_small(minimum: Usdc) -> AppError {
    let refusal = AppError::new(ErrorCode::AmountTooSmall);
    if minimum == Usdc::ZERO {
        return refusal.detail("The amount is too small: it rounds to zero.");
    }
    refusal
        .detail(format!("The amount must be at least {} USDC.", minimum.to_decimal()))
        .with("minimum", minimum.to_string())
}
