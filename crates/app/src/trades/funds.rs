//! The account that a trade spends from: on chain, delegated, and with enough USDC.

use alloy_primitives::{Address, U256};
use chain::AccountState;
use domain::{ErrorCode, Usdc};
use store::StoreError;
use store::users::Account;

use crate::keys::Caller;
use crate::{AppError, Ctx};

/// The caller's account, on chain and with a live delegation for this key.
pub async fn delegated_account(
    ctx: &Ctx,
    caller: &Caller,
) -> Result<(Account, Address, AccountState), AppError> {
    let not_provisioned = || AppError::new(ErrorCode::SmartAccountNotProvisioned);
    let user_id = caller.user_id();
    let account: Result<Option<Account>, StoreError> =
        ctx.store.read(user_id, |tx, id| Box::pin(store::users::find_account(tx, *id))).await;
    let account = account?.ok_or_else(not_provisioned)?;
    let address: Address =
        account.address.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
    let state = ctx.chain.account_state(address, caller.key.key_index).await?;
    if !state.provisioned {
        return Err(not_provisioned());
    }
    if !state.lets_spend(ctx.now().s()) {
        return Err(AppError::new(ErrorCode::WalletDelegationNotEnabled));
    }
    Ok((account, address, state))
}

/// What the Gate can take of an account's USDC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Funds {
    /// The amount, what open trades have reserved of it included.
    pub spendable: Usdc,
    /// The last settled block, where the amount is that block's; the newest block's otherwise.
    pub settled: Option<u64>,
}

impl Funds {
    /// All that the account holds.
    pub fn balance(state: &AccountState) -> Usdc {
        atomic(state.usdc_balance_atomic)
    }

    /// What is there now. A trade that is in a block but not settled counts twice in it: it has left the balance and is
    /// still reserved. So this is never too much, and may be too little.
    pub fn newest(state: &AccountState) -> Self {
        Self { spendable: atomic(state.usdc_balance_atomic.min(state.gate_allowance_atomic)), settled: None }
    }

    /// What was there after the last settled block, of which exactly the open trades' reservations are still to leave.
    /// It holds as long as no further block is settled.
    pub async fn settled(
        ctx: &Ctx,
        address: Address,
        state: &AccountState,
    ) -> Result<Option<Self>, AppError> {
        let settled: Result<_, StoreError> =
            ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
        let Some(block) = settled? else { return Ok(None) };
        let balance = ctx.chain.usdc_balance_at(address, block).await?;
        Ok(Some(Self { spendable: atomic(balance.min(state.gate_allowance_atomic)), settled: Some(block) }))
    }
}

fn atomic(amount: U256) -> Usdc {
    Usdc::from_atomic(u64::try_from(amount).unwrap_or(i64::MAX as u64))
}

/// The refusal of a trade that needs more than is there and not reserved.
pub fn insufficient(needed: Usdc, spendable: Usdc, reserved: Usdc) -> AppError {
    AppError::new(ErrorCode::InsufficientBalance)
        .with("requiredUsdc", needed.to_string())
        .with("availableUsdc", spendable.saturating_sub(reserved).to_string())
}
