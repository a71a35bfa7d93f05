//! What is read from the contracts, in the service's words.

use alloy_primitives::U256;
use serde::{Deserialize, Serialize};

use super::error::ChainError;

/// What a trade moves, and the state it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Fee included: what leaves the buyer, what reaches the seller.
    pub usdc_atomic: u64,
    /// What the buyer receives, what the seller gives.
    pub tokens_wad: U256,
    /// The fee within it.
    pub fee_atomic: u64,
    /// The market's `C` before.
    pub cost_before_wad: U256,
    /// The market's `C` after.
    pub cost_after_wad: U256,
    /// The outcome's `q_i` before.
    pub quantity_before_wad: U256,
    /// The outcome's `q_i` after.
    pub quantity_after_wad: U256,
}

/// Where a market stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum MarketStatus {
    /// There is no such market.
    None = 0,
    /// Seen, not yet tradeable.
    Listed = 1,
    /// Tradeable.
    Open = 2,
    /// Not tradeable for now, or past its close time.
    Frozen = 3,
    /// Decided: positions are redeemed by the payouts.
    Resolved = 4,
    /// Called off: positions are refunded.
    Cancelled = 5,
}

impl MarketStatus {
    pub(super) fn from_wire(value: u8) -> Result<Self, ChainError> {
        let all = [Self::None, Self::Listed, Self::Open, Self::Frozen, Self::Resolved, Self::Cancelled];
        let status = all.get(usize::from(value)).copied();
        status.ok_or_else(|| ChainError::Decode(format!("there is no market status {value}")))
    }
}

/// A market's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketOnChain {
    /// `Frozen` also when an open market is past its close time; `None` where there is no such market.
    pub status: MarketStatus,
    /// Hundredths of a percent.
    pub fee_bps: u16,
    /// When trading stops by itself, Unix seconds.
    pub close_time_s: u64,
    /// The market maker's `b`.
    pub liquidity_usdc_atomic: u64,
    /// Fees collected and not yet swept.
    pub fees_usdc_atomic: u64,
    /// The market's `C`.
    pub cost_wad: U256,
    /// Each outcome, in order.
    pub outcomes: Vec<OutcomeOnChain>,
}

/// An outcome's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeOnChain {
    /// `q_i`.
    pub quantity_wad: U256,
    /// Tokens held by traders.
    pub supply_wad: U256,
    /// What the holders paid for what they hold.
    pub basis_usdc_atomic: u64,
    /// USDC traded on this outcome, both directions.
    pub volume_usdc_atomic: u64,
    /// How many trades.
    pub trades: u32,
}

/// One of an account's delegations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Cap on one trade.
    pub per_trade_usdc_atomic: u64,
    /// Cap on a window of 24 hours.
    pub daily_usdc_atomic: u64,
    /// Spent within the window.
    pub spent_usdc_atomic: u64,
    /// When the window began, Unix seconds.
    pub window_start_s: u64,
    /// When the delegation ends, Unix seconds; zero where there is none.
    pub expiry_s: u64,
    /// The highest nonce used; zero where none was, since nonces begin at one.
    pub nonce_top: u32,
    /// Bit i: the nonce `nonce_top - 1 - i` is used.
    pub nonce_bitmap: u32,
}

impl Policy {
    /// Whether the key may trade at that time (Unix seconds), caps aside.
    pub fn is_live(&self, now_s: u64) -> bool {
        self.expiry_s != 0 && now_s <= self.expiry_s
    }
}

/// The Gate's cap on what all delegated trades move within an hour, which begins with the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourlyVolume {
    /// The cap; the largest number is no cap.
    pub cap_usdc_atomic: u64,
    /// Moved within the hour.
    pub used_usdc_atomic: u64,
    /// When the hour began, Unix seconds.
    pub window_start_s: u64,
}

/// How long the Gate's hour lasts.
const VOLUME_WINDOW_S: u64 = 3_600;
/// How much later than the service's clock a block's time is expected at the most. On a quiet chain the newest block, against
/// which the volume is read, may be old; a transaction is judged in a new block.
const CLOCK_MARGIN_S: u64 = 15;

impl HourlyVolume {
    /// What may still be moved at that time (Unix seconds); `None` without a cap.
    pub const fn left(&self, now_s: u64) -> Option<u64> {
        if self.cap_usdc_atomic == u64::MAX {
            return None;
        }
        let is_over = now_s >= self.window_start_s + VOLUME_WINDOW_S + CLOCK_MARGIN_S;
        let used = if is_over { 0 } else { self.used_usdc_atomic };
        Some(self.cap_usdc_atomic.saturating_sub(used))
    }
}

/// What a key needs in order to trade for an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountState {
    /// Whether the account's contract is there.
    pub provisioned: bool,
    /// What the account holds.
    pub usdc_balance_atomic: U256,
    /// How much of it the Gate may move.
    pub gate_allowance_atomic: U256,
    /// The key's policy.
    pub policy: Policy,
}

impl AccountState {
    /// Whether the account lets the key spend at that time (Unix seconds), caps and balance aside.
    pub fn lets_spend(&self, now_s: u64) -> bool {
        self.policy.is_live(now_s) && !self.gate_allowance_atomic.is_zero()
    }
}

/// What an account holds of one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Tokens.
    pub tokens_wad: U256,
    /// What was paid for them.
    pub basis_usdc_atomic: u64,
}

/// How a market ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What one token of each outcome pays; empty where the cost basis is refunded.
    pub payouts_wad: Vec<U256>,
    /// The part of the cost basis that is refunded; below 1e18 where the pool was short.
    pub scale_wad: U256,
}

/// The hub's token id of an outcome: `market_id << 8 | outcome`.
pub fn token_id(market_id: u64, outcome: u8) -> U256 {
    (U256::from(market_id) << 8) | U256::from(outcome)
}

/// The market and the outcome of a token id.
pub(super) fn market_and_outcome(token_id: U256) -> Result<(u64, u8), ChainError> {
    let market_id = u64_of(token_id >> 8, "token id")?;
    Ok((market_id, token_id.byte(0)))
}

pub(super) fn u64_of(value: U256, what: &str) -> Result<u64, ChainError> {
    u64::try_from(value).map_err(|_| ChainError::Decode(format!("{what} {value} is above 64 bits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_that_is_over_has_its_whole_volume_left() {
        let volume = HourlyVolume { cap_usdc_atomic: 100, used_usdc_atomic: 70, window_start_s: 1_000 };
        let over = 1_000 + VOLUME_WINDOW_S + CLOCK_MARGIN_S;
        assert_eq!([1_000, over - 1, over].map(|now| volume.left(now)), [Some(30), Some(30), Some(100)]);
        assert_eq!(HourlyVolume { cap_usdc_atomic: 50, ..volume }.left(1_000), Some(0));
        assert_eq!(HourlyVolume { cap_usdc_atomic: u64::MAX, ..volume }.left(1_000), None);
    }
}
