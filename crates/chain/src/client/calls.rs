//! Calldata of everything the service sends besides delegated trades. Each function names the contract it is
//! for.

use alloy::sol_types::SolCall;
use alloy_primitives::{Address, B256, Bytes, U256};

use super::batch::Call;
use super::bindings::token::Token;
use super::bindings::{Account, AccountFactory, Gate, MarketHub};
use super::owner::Owner;
use super::state::token_id;

/// What a market is created with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketTerms {
    /// The creator's own name for the market: a second creation under it is refused.
    pub reference: B256,
    /// How many outcomes, 2 to 250.
    pub outcomes: u8,
    /// The fee on trades, 0 to 1000 hundredths of a percent.
    pub fee_bps: u16,
    /// When trading stops by itself, Unix seconds.
    pub close_time_s: u32,
    /// The market maker's `b`. Its funding, `ceil(b ln(1 / min odds))`, comes from the caller.
    pub liquidity_usdc_atomic: u64,
    /// Opening odds of each outcome, WAD, summing to 1e18; empty where all are equal.
    pub opening_odds_wad: Vec<U256>,
}

/// Gate, sent by the account: caps (USDC atomic, below 2^44) and expiry (Unix seconds) of one of its keys.
pub fn set_policy(
    key_index: u32,
    per_trade_usdc_atomic: u64,
    daily_usdc_atomic: u64,
    expiry_s: u32,
) -> Bytes {
    let call = Gate::setPolicyCall {
        key: key_index,
        perTrade: per_trade_usdc_atomic,
        daily: daily_usdc_atomic,
        expiry: expiry_s,
    };
    call.abi_encode().into()
}

/// Gate, sent by an executor: lowers what is above the given values, raises nothing.
pub fn reduce_policy(
    account: Address,
    key_index: u32,
    per_trade_usdc_atomic: u64,
    daily_usdc_atomic: u64,
    expiry_s: u32,
) -> Bytes {
    let call = Gate::reducePolicyCall {
        account,
        key: key_index,
        perTrade: per_trade_usdc_atomic,
        daily: daily_usdc_atomic,
        expiry: expiry_s,
    };
    call.abi_encode().into()
}

/// Gate, sent by an executor or the account: ends the key's delegation.
pub fn revoke_policy(account: Address, key_index: u32) -> Bytes {
    Gate::revokePolicyCall { account, key: key_index }.abi_encode().into()
}

/// Gate, sent by the guardian: refuses every intent while paused.
pub fn set_paused(paused: bool) -> Bytes {
    Gate::setPausedCall { paused_: paused }.abi_encode().into()
}

/// Gate, sent by the guardian: how much USDC all accounts may move in an hour.
pub fn set_hourly_volume_cap(usdc_atomic: u64) -> Bytes {
    Gate::setHourlyVolumeCapCall { usdc_: usdc_atomic }.abi_encode().into()
}

/// Hub, sent by the resolver, who pays the funding.
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

/// Hub, anyone: opens a listed market once the listing delay is over.
pub fn open(market_id: u64) -> Bytes {
    MarketHub::openCall { marketId: market_id }.abi_encode().into()
}

/// Hub, guardian or resolver: stops trading.
pub fn freeze(market_id: u64) -> Bytes {
    MarketHub::freezeCall { marketId: market_id }.abi_encode().into()
}

/// Hub, guardian or resolver: lets trading go on.
pub fn unfreeze(market_id: u64) -> Bytes {
    MarketHub::unfreezeCall { marketId: market_id }.abi_encode().into()
}

/// Hub, resolver: proposes what one token of each outcome pays, WAD; final at once where there is no veto
/// window.
pub fn propose(market_id: u64, payouts_wad: Vec<U256>) -> Bytes {
    MarketHub::proposeCall { marketId: market_id, payouts: payouts_wad }.abi_encode().into()
}

/// Hub, guardian: throws the proposal out.
pub fn veto(market_id: u64) -> Bytes {
    MarketHub::vetoCall { marketId: market_id }.abi_encode().into()
}

/// Hub, anyone: resolves as proposed, once the veto window is over.
pub fn finalize(market_id: u64) -> Bytes {
    MarketHub::finalizeCall { marketId: market_id }.abi_encode().into()
}

/// Hub, resolver: cancels, refunding what holders paid for what they hold.
pub fn cancel(market_id: u64) -> Bytes {
    MarketHub::cancelCall { marketId: market_id }.abi_encode().into()
}

/// Hub, resolver: cancels, paying each token as given, WAD.
pub fn cancel_with_payouts(market_id: u64, payouts_wad: Vec<U256>) -> Bytes {
    MarketHub::cancelWithPayoutsCall { marketId: market_id, payouts: payouts_wad }.abi_encode().into()
}

/// Hub, anyone, who pays: raises a refund that had to be scaled down.
pub fn top_up(market_id: u64, usdc_atomic: u64) -> Bytes {
    MarketHub::topUpCall { marketId: market_id, usdc_: usdc_atomic }.abi_encode().into()
}

/// Hub, anyone: sends the collected fees to the treasury.
pub fn sweep_fees(market_id: u64) -> Bytes {
    MarketHub::sweepFeesCall { marketId: market_id }.abi_encode().into()
}

/// Hub, anyone: pays the holder what its tokens are worth.
pub fn redeem(account: Address, market_id: u64, outcome: u8) -> Bytes {
    MarketHub::redeemCall { account, marketId: market_id, index: outcome }.abi_encode().into()
}

/// Hub, anyone: the same for many positions; one that cannot be paid does not stop the others.
pub fn redeem_batch(positions: &[(Address, u64, u8)]) -> Bytes {
    let accounts = positions.iter().map(|(account, ..)| *account).collect();
    let token_ids = positions.iter().map(|(_, market_id, outcome)| token_id(*market_id, *outcome)).collect();
    MarketHub::redeemBatchCall { accounts, tokenIds: token_ids }.abi_encode().into()
}

/// USDC, sent by the holder: lets `spender` move that much.
pub fn approve(spender: Address, usdc_atomic: U256) -> Bytes {
    Token::approveCall { spender, value: usdc_atomic }.abi_encode().into()
}

/// USDC, sent by the holder.
pub fn transfer(to: Address, usdc_atomic: U256) -> Bytes {
    Token::transferCall { to, value: usdc_atomic }.abi_encode().into()
}

/// Test USDC only: makes new money.
pub fn mint(to: Address, usdc_atomic: U256) -> Bytes {
    Token::mintCall { to, value: usdc_atomic }.abi_encode().into()
}

/// AccountFactory, anyone: makes the account if it is not there yet and runs its owner's first batch.
pub fn create_and_execute(
    owner: &Owner,
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

/// The account, anyone: runs a batch that its owner signed.
pub fn execute_signed(calls: &[Call], deadline_s: u64, signature: Bytes) -> Bytes {
    let calls =
        calls.iter().cloned().map(|Call { target, value, data }| Account::Call { target, value, data });
    let deadline = U256::from(deadline_s);
    Account::executeSignedCall { calls: calls.collect(), deadline, signature }.abi_encode().into()
}
