//! Calls that the service never makes: what anybody may do past it with the hub, and what USDC's issuer may do.

use alloy::sol_types::SolCall;
use alloy_primitives::{Address, Bytes, U256};
use chain::{calls, token_id};
use domain::Usdc;

use crate::{TestApp, TestMarket, TestUser};

mod open {
    alloy::sol! {
        function buy(uint64 marketId, uint8 outcome, uint256 usdc, uint256 minTokens) external;
        function sell(uint64 marketId, uint8 outcome, uint256 tokens, uint256 minUsdc) external;
        function transfer(address receiver, uint256 id, uint256 amount) external returns (bool);
        function transferFrom(address sender, address receiver, uint256 id, uint256 amount) external returns (bool);
        function approve(address spender, uint256 id, uint256 amount) external returns (bool);
        function setOperator(address spender, bool approved) external returns (bool);
        function blacklist(address account) external;
        function unBlacklist(address account) external;
    }
}

/// A buy without a bound by the sender itself.
pub fn buy(market: TestMarket, outcome: u8, usdc: Usdc) -> Bytes {
    let usdc = U256::from(usdc.atomic());
    open::buyCall { marketId: market.number, outcome, usdc, minTokens: U256::ZERO }.abi_encode().into()
}

/// A sale without a bound by the sender itself.
pub fn sell(market: TestMarket, outcome: u8, tokens_wad: U256) -> Bytes {
    open::sellCall { marketId: market.number, outcome, tokens: tokens_wad, minUsdc: U256::ZERO }
        .abi_encode()
        .into()
}

/// A transfer of tokens by their holder.
pub fn transfer(receiver: Address, market: TestMarket, outcome: u8, tokens_wad: U256) -> Bytes {
    open::transferCall { receiver, id: token_id(market.number, outcome), amount: tokens_wad }
        .abi_encode()
        .into()
}

/// A transfer of any amount of any token, whether it exists or not.
pub fn transfer_id(receiver: Address, id: U256, amount: U256) -> Bytes {
    open::transferCall { receiver, id, amount }.abi_encode().into()
}

/// The same out of somebody else's position.
pub fn transfer_from(sender: Address, receiver: Address, id: U256, amount: U256) -> Bytes {
    open::transferFromCall { sender, receiver, id, amount }.abi_encode().into()
}

/// An approval of any token.
pub fn approve(spender: Address, id: U256, amount: U256) -> Bytes {
    open::approveCall { spender, id, amount }.abi_encode().into()
}

/// Makes somebody an operator of the sender's positions.
pub fn set_operator(spender: Address, approved: bool) -> Bytes {
    open::setOperatorCall { spender, approved }.abi_encode().into()
}

impl TestApp {
    /// Somebody who is no user here buys from the hub directly, with USDC of its own.
    ///
    /// # Panics
    /// Where the contracts refuse.
    pub async fn stranger_buys(&self, market: TestMarket, outcome: u8, usdc: &str) {
        let usdc: Usdc = usdc.parse().expect("an amount of USDC");
        let stranger = self.roles.stranger.clone();
        let contracts = self.ctx.chain.contracts().clone();
        self.mint(stranger.address(), usdc).await;
        self.send(&stranger, contracts.usdc, calls::approve(contracts.hub, U256::MAX)).await;
        self.send(&stranger, contracts.hub, buy(market, outcome, usdc)).await;
    }

    /// USDC's issuer blocks the user's account, or lets it go again.
    ///
    /// # Panics
    /// Where the contracts refuse.
    pub async fn block(&self, user: &TestUser, blocked: bool) {
        let account = user.account;
        let data = if blocked {
            open::blacklistCall { account }.abi_encode()
        } else {
            open::unBlacklistCall { account }.abi_encode()
        };
        self.send(&self.roles.deployer, self.ctx.chain.contracts().usdc, data.into()).await;
    }
}
