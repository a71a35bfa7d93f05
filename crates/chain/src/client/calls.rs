//! Calldata of all calls except delegated trades. Each function names its contract and its senders.

use alloy::sol_types::SolCall;
use alloy_primitives::{Address, B256, Bytes, U256};

use super::batch::Call;
use super::owner::AccountOwner;
use super::roles::Role;
use super::state::{SpendingLimits, token_id};
use crate::bindings::token::Token;
use crate::bindings::{Account, AccountFactory, Authority, Gate, MarketHub};

/// The terms of a new market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketTerms {
    /// The creator's reference. The hub rejects a second market with the same one.
    pub reference: B256,
    /// The number of outcomes, 2 to 250.
    pub outcomes: u8,
    /// The fee on trades in hundredths of a percent, at most 1000.
    pub fee_bps: u16,
    /// The end of trading, Unix seconds.
    pub close_time_s: u32,
    /// The market maker's `b`. The sender pays the funding, `ceil(b ln(1 / min odds))`.
    pub liquidity_usdc_atomic: u64,
    /// The opening odds of each outcome in WAD, which sum to 1e18. Empty if all are equal.
    pub opening_odds_wad: Vec<U256>,
}

/// Gate, sent by the account: sets the limits of one of its keys.
pub fn set_policy(key_index: u32, limits: SpendingLimits) -> Bytes {
    Gate::setPolicyCall { key: key_index, limits: limits.into() }.abi_encode().into()
}

/// Gate, sent by an executor: lowers each limit that is above the given value and never raises one.
pub fn reduce_policy(account: Address, key_index: u32, limits: SpendingLimits) -> Bytes {
    Gate::reducePolicyCall { account, key: key_index, limits: limits.into() }.abi_encode().into()
}

/// Gate, sent by an executor or the account: ends the key's delegation.
pub fn revoke_policy(account: Address, key_index: u32) -> Bytes {
    Gate::revokePolicyCall { account, key: key_index }.abi_encode().into()
}

/// Gate, sent by the guardian, or by the owner to pause: refuses every intent while paused.
pub fn set_paused(paused: bool) -> Bytes {
    Gate::setPausedCall { paused_: paused }.abi_encode().into()
}

/// Gate, sent by the owner: proposes an executor, or another hourly cap for one.
pub fn propose_executor(executor: Address, hourly_cap_usdc_atomic: u64) -> Bytes {
    Gate::proposeExecutorCall { executor_: executor, hourlyCap: hourly_cap_usdc_atomic }.abi_encode().into()
}

/// Gate, sent by any address after the delay: the proposal takes effect.
pub fn enact_executor(executor: Address) -> Bytes {
    Gate::enactExecutorCall { executor_: executor }.abi_encode().into()
}

/// Gate, sent by the guardian or the owner: removes the proposal.
pub fn veto_executor(executor: Address) -> Bytes {
    Gate::vetoExecutorCall { executor_: executor }.abi_encode().into()
}

/// Gate, sent by the guardian or the owner: lowers an executor's hourly cap at once. Zero removes
/// the executor.
pub fn lower_executor(executor: Address, hourly_cap_usdc_atomic: u64) -> Bytes {
    Gate::lowerExecutorCall { executor_: executor, hourlyCap: hourly_cap_usdc_atomic }.abi_encode().into()
}

/// Authority, sent by the owner: proposes a new holder of a role.
pub fn propose_role(role: Role, to: Address) -> Bytes {
    Authority::proposeCall { role: role as u8, to }.abi_encode().into()
}

/// Authority, sent by the proposed holder after the delay.
pub fn accept_role(role: Role) -> Bytes {
    Authority::acceptCall { role: role as u8 }.abi_encode().into()
}

/// Authority, sent by the guardian or the owner: removes the owner's proposal of a new holder. For
/// the guardian's own role the resolver sends it instead of the guardian.
pub fn veto_role(role: Role) -> Bytes {
    Authority::vetoCall { role: role as u8 }.abi_encode().into()
}

/// Authority, sent by the guardian: proposes a new owner.
pub fn propose_recovery(to: Address) -> Bytes {
    Authority::proposeRecoveryCall { to }.abi_encode().into()
}

/// Authority, sent by the owner that the guardian proposed, after the delay.
pub fn accept_recovery() -> Bytes {
    Authority::acceptRecoveryCall {}.abi_encode().into()
}

/// Authority, sent by the guardian or the resolver: removes the guardian's proposal of a new
/// owner.
pub fn veto_recovery() -> Bytes {
    Authority::vetoRecoveryCall {}.abi_encode().into()
}

/// Authority, sent by the owner or the guardian: takes away the resolver's power over markets at
/// once.
pub fn suspend_resolver() -> Bytes {
    Authority::suspendResolverCall {}.abi_encode().into()
}

/// Hub, sent by the resolver: creates a market and takes its funding from the sender.
pub fn create_market(terms: &MarketTerms) -> Bytes {
    let terms = MarketHub::MarketTerms {
        r#ref: terms.reference,
        outcomes: terms.outcomes,
        feeBps: terms.fee_bps,
        closeTime: terms.close_time_s,
        liquidity: terms.liquidity_usdc_atomic,
        openingOdds: terms.opening_odds_wad.clone(),
    };
    MarketHub::createMarketCall { terms }.abi_encode().into()
}

/// Hub, sent by any address: opens a listed market after the listing delay.
pub fn open(market_id: u64) -> Bytes {
    MarketHub::openCall { marketId: market_id }.abi_encode().into()
}

/// Hub, sent by the guardian or the resolver: stops trading.
pub fn freeze(market_id: u64) -> Bytes {
    MarketHub::freezeCall { marketId: market_id }.abi_encode().into()
}

/// Hub, sent by the guardian, or by the resolver if the guardian has not frozen the market: resumes
/// trading.
pub fn unfreeze(market_id: u64) -> Bytes {
    MarketHub::unfreezeCall { marketId: market_id }.abi_encode().into()
}

/// Hub, sent by the resolver: proposes the payout of one token of each outcome in WAD. Final at once
/// without a veto window.
pub fn propose(market_id: u64, payouts_wad: Vec<U256>) -> Bytes {
    MarketHub::proposeCall { marketId: market_id, payouts: payouts_wad }.abi_encode().into()
}

/// Hub, sent by the guardian: removes the proposal of a result or a cancel.
pub fn veto(market_id: u64) -> Bytes {
    MarketHub::vetoCall { marketId: market_id }.abi_encode().into()
}

/// Hub, sent by any address: resolves or cancels as proposed, after the veto window.
pub fn finalize(market_id: u64) -> Bytes {
    MarketHub::finalizeCall { marketId: market_id }.abi_encode().into()
}

/// Hub, sent by the resolver, or by any address after the deadline of the result: proposes that
/// every token pays the reference price of its outcome. Final at once without a veto window.
pub fn propose_cancel(market_id: u64) -> Bytes {
    MarketHub::proposeCancelCall { marketId: market_id }.abi_encode().into()
}

/// Hub, sent by the buyer: buys tokens for this USDC, the fee included, or reverts if they are fewer
/// than `min_tokens_wad`.
pub fn buy(market_id: u64, outcome: u8, usdc_atomic: u64, min_tokens_wad: U256) -> Bytes {
    let usdc = U256::from(usdc_atomic);
    MarketHub::buyCall { marketId: market_id, index: outcome, usdc_: usdc, minTokens: min_tokens_wad }
        .abi_encode()
        .into()
}

/// Hub, sent by the holder: sells tokens, or reverts if they pay less than `min_usdc_atomic` after the
/// fee.
pub fn sell(market_id: u64, outcome: u8, tokens_wad: U256, min_usdc_atomic: u64) -> Bytes {
    let min_usdc = U256::from(min_usdc_atomic);
    MarketHub::sellCall { marketId: market_id, index: outcome, tokens: tokens_wad, minUsdc: min_usdc }
        .abi_encode()
        .into()
}

/// Hub, sent by the holder: turns USDC into as many tokens of every outcome.
pub fn split(market_id: u64, usdc_atomic: u64) -> Bytes {
    MarketHub::splitCall { marketId: market_id, usdc_: U256::from(usdc_atomic) }.abi_encode().into()
}

/// Hub, sent by the holder: turns tokens of every outcome into as much USDC.
pub fn merge(market_id: u64, usdc_atomic: u64) -> Bytes {
    MarketHub::mergeCall { marketId: market_id, usdc_: U256::from(usdc_atomic) }.abi_encode().into()
}

/// Hub, sent by any address: sends the collected fees to the treasury.
pub fn sweep_fees(market_id: u64) -> Bytes {
    MarketHub::sweepFeesCall { marketId: market_id }.abi_encode().into()
}

/// Hub, sent by any address: pays the holder of tokens of a settled market.
pub fn redeem(account: Address, market_id: u64, outcome: u8) -> Bytes {
    MarketHub::redeemCall { account, marketId: market_id, index: outcome }.abi_encode().into()
}

/// Hub, sent by any address: pays many positions. A failed payment does not stop the others.
pub fn redeem_batch(positions: &[(Address, u64, u8)]) -> Bytes {
    let accounts = positions.iter().map(|(account, ..)| *account).collect();
    let token_ids = positions.iter().map(|(_, market_id, outcome)| token_id(*market_id, *outcome)).collect();
    MarketHub::redeemBatchCall { accounts, tokenIds: token_ids }.abi_encode().into()
}

/// USDC, sent by the holder: sets the allowance of `spender`.
pub fn approve(spender: Address, usdc_atomic: U256) -> Bytes {
    Token::approveCall { spender, value: usdc_atomic }.abi_encode().into()
}

/// USDC, sent by the holder.
pub fn transfer(to: Address, usdc_atomic: U256) -> Bytes {
    Token::transferCall { to, value: usdc_atomic }.abi_encode().into()
}

/// Returns the receiver and the atomic USDC of a [`transfer`]. `None` if the data is another call.
pub fn decode_transfer(data: &[u8]) -> Option<(Address, U256)> {
    Token::transferCall::abi_decode(data).ok().map(|call| (call.to, call.value))
}

/// Hub, sent by the holder: sends tokens of an outcome to another address.
pub fn transfer_position(to: Address, market_id: u64, outcome: u8, tokens_wad: U256) -> Bytes {
    let id = token_id(market_id, outcome);
    MarketHub::transferCall { receiver: to, id, amount: tokens_wad }.abi_encode().into()
}

/// Test USDC only: mints USDC.
pub fn mint(to: Address, usdc_atomic: U256) -> Bytes {
    Token::mintCall { to, value: usdc_atomic }.abi_encode().into()
}

/// AccountFactory, sent by any address: deploys the account of this first owner if it does not exist
/// and executes a batch signed by one of its owners. Does nothing if the account has executed the
/// same batch last.
pub fn create_and_execute(
    owner: &AccountOwner,
    salt: B256,
    calls: &[Call],
    deadline_s: u64,
    signature: Bytes,
) -> Bytes {
    let calls = calls.iter().cloned().map(|Call { target, value, data }| AccountFactory::Call {
        target,
        value,
        data,
    });
    let call = AccountFactory::createAndExecuteCall {
        owner: owner.to_bytes(),
        salt,
        calls: calls.collect(),
        deadline: U256::from(deadline_s),
        signature,
    };
    call.abi_encode().into()
}

/// The account, sent by itself: adds an owner.
pub fn add_owner(owner: &AccountOwner) -> Bytes {
    Account::addOwnerCall { owner: owner.to_bytes() }.abi_encode().into()
}

/// The account, sent by itself: removes an owner except the last one.
pub fn remove_owner(owner: &AccountOwner) -> Bytes {
    Account::removeOwnerCall { owner: owner.to_bytes() }.abi_encode().into()
}

/// The account, sent by any address: executes a batch signed by one of its owners.
pub fn execute_signed(calls: &[Call], deadline_s: u64, signature: Bytes) -> Bytes {
    let calls =
        calls.iter().cloned().map(|Call { target, value, data }| Account::Call { target, value, data });
    let deadline = U256::from(deadline_s);
    Account::executeSignedCall { calls: calls.collect(), deadline, signature }.abi_encode().into()
}
