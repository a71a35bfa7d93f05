//! Test money for the accounts of a demonstration.

use domain::ids::UserId;
use domain::{ErrorCode, Usdc};

use crate::{AppError, Ctx, accounts};

/// The amount of one request. An account that holds as much gets no more.
pub const FAUCET_USDC: Usdc = Usdc::from_whole(1_000);

/// Mints test USDC for the user's account.
///
/// # Errors
/// `RESOURCE_NOT_FOUND` if the service has no faucet, `VALIDATION_FAILED` if the account holds enough.
pub async fn give(ctx: &Ctx, user_id: UserId) -> Result<(), AppError> {
    let faucet = ctx.config.faucet.as_ref().ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))?;
    let account = accounts::account_of(ctx, user_id).await?.address;
    if accounts::balance_of(ctx, account).await? >= FAUCET_USDC {
        return Err(AppError::new(ErrorCode::ValidationFailed).detail("The account has enough test money."));
    }
    // Only `foretell dev` has a faucet, so no lane uses this key.
    accounts::fund(ctx, faucet, user_id, FAUCET_USDC).await?;
    Ok(())
}
