//! What is still missing before a key can trade: the account, the delegation, the money, in the order in which a trade's
//! creation asks for them.

use alloy_primitives::U256;
use chain::{AccountState, Policy};
use domain::{ErrorCode, Usdc};
use store::StoreError;
use store::users::Account;

use crate::accounts::address_of;
use crate::keys::Caller;
use crate::trades::Funds;
use crate::{AppError, Ctx};

/// What the key's account has and lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The account's address, which is known before the account is on chain.
    pub address: Option<String>,
    /// Whether the account is on chain.
    pub provisioned: bool,
    /// Whether the account lets this key spend.
    pub delegated: bool,
    /// The key's policy on chain.
    pub policy: Policy,
    /// The account's USDC.
    pub balance: Usdc,
    /// What open trades have set aside of it.
    pub reserved: Usdc,
    /// How much of the account's USDC the Gate may move, in atomic units.
    pub allowance_atomic: U256,
    /// Whether there is USDC that a buy could spend.
    pub funded: bool,
}

impl Readiness {
    /// Whether the key can trade.
    pub const fn is_ready(&self) -> bool {
        self.provisioned && self.delegated && self.funded
    }

    /// What is missing, each by the code that a trade would be refused with.
    pub fn missing(&self) -> impl Iterator<Item = ErrorCode> {
        let steps = [
            (self.provisioned, ErrorCode::SmartAccountNotProvisioned),
            (self.delegated, ErrorCode::WalletDelegationNotEnabled),
            (self.funded, ErrorCode::InsufficientBalance),
        ];
        steps.into_iter().filter(|(done, _)| !done).map(|(_, code)| code)
    }

    fn new(address: Option<String>, state: &AccountState, reserved: Usdc, now_s: u64) -> Self {
        let delegated = state.provisioned && state.lets_spend(now_s);
        let balance = Funds::balance(state);
        // Before the Gate may move anything, the balance itself is what a delegation would make spendable.
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

/// What the calling key's account has and lacks. Asks nothing of it: a user without an account is told so.
pub async fn of_key(ctx: &Ctx, caller: &Caller) -> Result<Readiness, AppError> {
    let account: Result<Option<Account>, StoreError> =
        ctx.store.read(caller.user_id(), |tx, id| Box::pin(store::users::find_account(tx, *id))).await;
    let now_s = ctx.now().s();
    let Some(account) = account? else {
        return Ok(Readiness::new(None, &AccountState::default(), Usdc::ZERO, now_s));
    };
    let state = ctx.chain.account_state(address_of(&account)?, caller.key.key_index).await?;
    Ok(Readiness::new(Some(account.address), &state, account.reserved, now_s))
}
