//! Contract calls that the service never makes: by other users of the hub, and by the issuer of
//! USDC.

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

/// A buy without a price limit.
pub fn buy(market: TestMarket, outcome: u8, usdc: Usdc) -> Bytes {
    let usdc = U256::from(usdc.atomic());
    open::buyCall { marketId: market.number, outcome, usdc, minTokens: U256::ZERO }.abi_encode().into()
}

/// A sale without a price limit.
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

/// A transfer of any amount of any token, even of one that does not exist.
pub fn transfer_id(receiver: Address, id: U256, amount: U256) -> Bytes {
    open::transferCall { receiver, id, amount }.abi_encode().into()
}

/// A transfer out of another account's position.
pub fn transfer_from(sender: Address, receiver: Address, id: U256, amount: U256) -> Bytes {
    open::transferFromCall { sender, receiver, id, amount }.abi_encode().into()
}

/// An approval for any token.
pub fn approve(spender: Address, id: U256, amount: U256) -> Bytes {
    open::approveCall { spender, id, amount }.abi_encode().into()
}

/// Makes an account an operator of the sender's positions.
pub fn set_operator(spender: Address, approved: bool) -> Bytes {
    open::setOperatorCall { spender, approved }.abi_encode().into()
}

impl TestApp {
    /// Mints USDC to an account that does not belong to the service, and buys with it directly from
    /// the hub.
    pub async fn stranger_buys(&self, market: TestMarket, outcome: u8, usdc: &str) {
        let usdc: Usdc = usdc.parse().expect("an amount of USDC");
        let stranger = self.roles.stranger.clone();
        let contracts = self.ctx.chain.contracts().clone();
        self.mint(stranger.address(), usdc).await;
        self.send(&stranger, contracts.usdc, calls::approve(contracts.hub, U256::MAX)).await;
        self.send(&stranger, contracts.hub, buy(market, outcome, usdc)).await;
    }

    /// Mints USDC to an account that does not belong to the service, and converts it to complete
    /// sets.
    pub async fn stranger_splits(&self, market: TestMarket, usdc: &str) {
        let usdc: Usdc = usdc.parse().expect("an amount of USDC");
        let stranger = self.roles.stranger.clone();
        let contracts = self.ctx.chain.contracts().clone();
        self.mint(stranger.address(), usdc).await;
        self.send(&stranger, contracts.usdc, calls::approve(contracts.hub, U256::MAX)).await;
        self.send(&stranger, contracts.hub, calls::split(market.number, usdc.atomic())).await;
    }

    /// Converts complete sets of the same account back to USDC.
    pub async fn stranger_merges(&self, market: TestMarket, usdc: &str) {
        let usdc: Usdc = usdc.parse().expect("an amount of USDC");
        let merge = calls::merge(market.number, usdc.atomic());
        self.send(&self.roles.stranger, self.ctx.chain.contracts().hub, merge).await;
    }

    /// Adds the user's account to the blocklist of USDC, or removes it.
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
