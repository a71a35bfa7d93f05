//! Trading readiness of a key: account, delegation and funds, in the order in which a new trade is
//! checked.

use alloy_primitives::{Address, U256};
use chain::{AccountState, Policy};
use domain::key::Scope;
use domain::{ErrorCode, Usdc};

use crate::caller::Caller;
use crate::trades::Funds;
use crate::{AppError, Ctx};

/// The state of the key's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReadiness {
    /// Known before the account is on chain.
    pub address: Option<Address>,
    /// The account is on chain.
    pub provisioned: bool,
    /// The account allows this key to spend.
    pub delegated: bool,
    /// The key's policy on chain.
    pub policy: Policy,
    /// The account's USDC balance.
    pub balance: Usdc,
    /// The amount that open trades have reserved.
    pub reserved: Usdc,
    /// The account's USDC allowance to the Gate, in atomic units.
    pub allowance_atomic: U256,
    /// Some USDC is available for a buy.
    pub funded: bool,
}

impl KeyReadiness {
    /// Returns whether the key can trade.
    pub const fn is_ready(&self) -> bool {
        self.provisioned && self.delegated && self.funded
    }

    /// Returns the error codes with which a trade would be rejected.
    pub fn missing(&self) -> impl Iterator<Item = ErrorCode> {
        let steps = [
            (self.provisioned, ErrorCode::SmartAccountNotProvisioned),
            (self.delegated, ErrorCode::WalletDelegationNotEnabled),
            (self.funded, ErrorCode::InsufficientBalance),
        ];
        steps.into_iter().filter(|(done, _)| !done).map(|(_, code)| code)
    }

    fn new(address: Option<Address>, state: &AccountState, reserved: Usdc, now_s: u64) -> Self {
        let delegated = state.provisioned && state.lets_spend(now_s);
        let balance = Funds::balance(state);
        // Without a delegation the allowance is zero, but the user's funds are still shown as
        // present.
        let spendable = if delegated { Funds::newest(state).spendable } else { balance };
        Self {
            address,
            provisioned: state.provisioned,
            delegated,
            policy: state.policy,
            balance,
            reserved,
            allowance_atomic: state.gate_allowance_atomic,
            funded: spendable > reserved,
        }
    }
}

/// Returns the readiness of the caller's key. A user without an account gets a result too, not an
/// error.
pub async fn of_key(ctx: &Ctx, caller: &Caller) -> Result<KeyReadiness, AppError> {
    caller.require(Scope::PortfolioRead)?;
    let account =
        ctx.store.read(caller.user_id(), |tx, id| Box::pin(store::users::find_account(tx, *id))).await;
    let now_s = ctx.now().s();
    let Some(account) = account? else {
        return Ok(KeyReadiness::new(None, &AccountState::default(), Usdc::ZERO, now_s));
    };
    let state = ctx.chain.account_state(account.address, caller.key.key_index).await?;
    Ok(KeyReadiness::new(Some(account.address), &state, account.reserved, now_s))
}
