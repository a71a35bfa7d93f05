//! The minimum trade, and the minimum payout that the service pays by itself. Below them, gas costs
//! the operator more than the amount is worth.
//!
//! Every position must be able to reach zero. So a sale that closes a position and a claim, which
//! always closes one, have no minimum: each of them follows a buy that had one.

use chain::{ChainError, Revert};
use domain::{ErrorCode, Usdc, Wad};

use crate::config::Redemptions;
use crate::{AppError, Ctx};

/// Rejects a buy below the minimum.
pub(crate) fn check_buy(ctx: &Ctx, usdc: Usdc) -> Result<(), AppError> {
    let minimum = ctx.config.min_trade;
    if is_below(minimum, usdc) { Err(too_small(minimum, "The amount must be at least")) } else { Ok(()) }
}

/// Rejects a sale below the minimum, unless it sells all `held` tokens.
pub(crate) fn check_sale(ctx: &Ctx, usdc: Usdc, tokens: Wad, held: Wad) -> Result<(), AppError> {
    let minimum = ctx.config.min_trade;
    if tokens == held || !is_below(minimum, usdc) {
        return Ok(());
    }
    Err(too_small(minimum, "A sale that leaves tokens must bring at least"))
}

/// Reports whether the service pays a position of this worth without a claim of its holder.
pub(crate) fn is_paid_unasked(ctx: &Ctx, worth: Usdc) -> bool {
    ctx.config.redemptions == Redemptions::Automatic && !is_below(ctx.config.min_claim, worth)
}

/// Reports whether the holder can claim a position of this worth.
pub(crate) fn is_claimable(ctx: &Ctx, worth: Usdc) -> bool {
    worth > Usdc::ZERO && !is_paid_unasked(ctx, worth)
}

/// Converts an error of a quote. An amount so small that nothing would move is below any minimum.
pub(crate) fn refused_quote(ctx: &Ctx, error: ChainError) -> AppError {
    match error {
        ChainError::Reverted(Revert::AmountZero) => {
            too_small(ctx.config.min_trade, "The amount must be at least").caused_by(error)
        }
        error => error.into(),
    }
}

fn is_below(minimum: Usdc, usdc: Usdc) -> bool {
    usdc == Usdc::ZERO || usdc < minimum
}

fn too_small(minimum: Usdc, requirement: &str) -> AppError {
    let refusal = AppError::new(ErrorCode::AmountTooSmall);
    if minimum == Usdc::ZERO {
        return refusal.detail("The amount is too small: it rounds to zero.");
    }
    refusal
        .detail(format!("{requirement} {} USDC.", minimum.to_decimal()))
        .with("minimum", minimum.to_string())
}
