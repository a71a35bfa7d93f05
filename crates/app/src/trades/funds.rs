//! Checks of the account that a trade spends from: provisioned, delegated and funded.

use alloy_primitives::{Address, U256};
use chain::AccountState;
use domain::{ErrorCode, Usdc};
use store::users::Account;

use crate::caller::Caller;
use crate::{AppError, Ctx};

/// Returns the caller's account, which must be provisioned on chain and have a live delegation for
/// this key.
pub async fn delegated_account(ctx: &Ctx, caller: &Caller) -> Result<(Account, AccountState), AppError> {
    let not_provisioned = || AppError::new(ErrorCode::SmartAccountNotProvisioned);
    let user_id = caller.user_id();
    let account = ctx.store.read(user_id, |tx, id| Box::pin(store::users::find_account(tx, *id))).await;
    let account = account?.ok_or_else(not_provisioned)?;
    let state = ctx.chain.account_state(account.address, caller.key.key_index).await?;
    if !state.provisioned {
        return Err(not_provisioned());
    }
    if !state.lets_spend(ctx.now().s()) {
        return Err(AppError::new(ErrorCode::WalletDelegationNotEnabled));
    }
    Ok((account, state))
}

/// The USDC that the Gate can take from an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Funds {
    /// Includes the amount that open trades have reserved.
    pub spendable: Usdc,
    /// The settled block that `spendable` was read at. `None` if it was read at the newest block.
    pub settled: Option<u64>,
}

impl Funds {
    /// Returns the account's whole USDC balance.
    pub fn balance(state: &AccountState) -> Usdc {
        atomic(state.usdc_balance_atomic)
    }

    /// Returns the funds at the newest block.
    ///
    /// A trade that is mined but not settled is subtracted twice: it has left the balance and is
    /// still reserved. So this can be too low, but never too high.
    pub fn newest(state: &AccountState) -> Self {
        Self { spendable: atomic(state.usdc_balance_atomic.min(state.gate_allowance_atomic)), settled: None }
    }

    /// Returns the funds at the last settled block. All of the open trades' reservations are still
    /// part of this balance. The result is valid until the next block is settled.
    pub async fn settled(
        ctx: &Ctx,
        address: Address,
        state: &AccountState,
    ) -> Result<Option<Self>, AppError> {
        let settled = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await?;
        let Some(block) = settled else { return Ok(None) };
        let balance = ctx.chain.usdc_balance_at(address, block).await?;
        Ok(Some(Self { spendable: atomic(balance.min(state.gate_allowance_atomic)), settled: Some(block) }))
    }
}

// An allowance may be the whole 256 bits (unlimited).
fn atomic(amount: U256) -> Usdc {
    Usdc::from_atomic(u64::try_from(amount).unwrap_or(i64::MAX as u64))
}

/// Returns the error for a sale of more tokens than the account holds.
pub fn too_few_tokens() -> AppError {
    AppError::new(ErrorCode::InsufficientBalance)
        .detail("The smart account does not hold enough tokens for this sale.")
}

/// Returns the error for a trade that needs more than the unreserved funds.
pub fn insufficient(needed: Usdc, spendable: Usdc, reserved: Usdc) -> AppError {
    AppError::new(ErrorCode::InsufficientBalance)
        .with("requiredUsdc", needed.to_string())
        .with("availableUsdc", spendable.saturating_sub(reserved).to_string())
}
