//! The state of markets, outcomes, policies and accounts as read from the contracts.

use alloy_primitives::{Address, U256};
use serde::{Deserialize, Serialize};

use super::roles::Role;
use crate::bindings::Gate;
use crate::error::ChainError;

/// The amounts that a trade moves, and the market's state before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// The amount that the buyer pays with the fee, or that the seller receives after it.
    pub usdc_atomic: u64,
    /// The tokens that the buyer receives or the seller gives.
    pub tokens_wad: U256,
    /// The fee: part of `usdc_atomic` for buys, deducted before it for sales.
    pub fee_atomic: u64,
    pub cost_before_wad: U256,
    pub cost_after_wad: U256,
    pub quantity_before_wad: U256,
    pub quantity_after_wad: U256,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum ChainMarketStatus {
    /// The market does not exist.
    None = 0,
    /// Visible, but not tradeable yet.
    Listed = 1,
    /// Tradeable.
    Open = 2,
    /// Trading is suspended, or the market is past its close time.
    Frozen = 3,
    /// Decided: positions are redeemed at the payouts.
    Resolved = 4,
    /// Cancelled: positions are redeemed at the reference prices.
    Cancelled = 5,
}

impl ChainMarketStatus {
    pub(super) fn from_wire(value: u8) -> Result<Self, ChainError> {
        let all = [Self::None, Self::Listed, Self::Open, Self::Frozen, Self::Resolved, Self::Cancelled];
        let status = all.get(usize::from(value)).copied();
        status.ok_or_else(|| ChainError::Decode(format!("there is no market status {value}")))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketOnChain {
    /// Also `Frozen` if an open market is past its close time. `None` if the market does not exist.
    pub status: ChainMarketStatus,
    pub fee_bps: u16,
    /// The time at which trading stops automatically, in Unix seconds.
    pub close_time_s: u64,
    /// The market maker's `b`.
    pub liquidity_usdc_atomic: u64,
    /// Fees collected and not yet swept to the treasury.
    pub fees_usdc_atomic: u64,
    /// The market maker's `C`.
    pub cost_wad: U256,
    /// In the contract's order.
    pub outcomes: Vec<OutcomeOnChain>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeOnChain {
    /// The market maker's `q_i`.
    pub quantity_wad: U256,
    /// Tokens that traders hold.
    pub supply_wad: U256,
    /// USDC traded on this outcome, buys and sales together.
    pub volume_usdc_atomic: u64,
    pub trades: u32,
}

/// The limits of one of an account's keys. Amounts must be below 2^44.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendingLimits {
    /// Cap on the cost of one buy.
    pub per_trade_usdc_atomic: u64,
    /// Cap on the cost of all buys within 24 hours.
    pub daily_usdc_atomic: u64,
    /// Cap on the face value of one sale, at 1 USDC per token.
    pub sale_per_trade_usdc_atomic: u64,
    /// Cap on the face value of all sales within 24 hours.
    pub sale_daily_usdc_atomic: u64,
    /// The end of the delegation, in Unix seconds.
    pub expiry_s: u32,
}

impl From<SpendingLimits> for Gate::Limits {
    fn from(limits: SpendingLimits) -> Self {
        Self {
            perTrade: limits.per_trade_usdc_atomic,
            daily: limits.daily_usdc_atomic,
            salePerTrade: limits.sale_per_trade_usdc_atomic,
            saleDaily: limits.sale_daily_usdc_atomic,
            expiry: limits.expiry_s,
        }
    }
}

/// The length of a key's daily windows, in seconds.
const POLICY_WINDOW_S: u64 = 86_400;
/// WAD per millionth of a USDC, at a face value of 1 USDC per token.
const WAD_PER_USDC_ATOMIC: u64 = 1_000_000_000_000;

/// Returns the face value of tokens at 1 USDC each, rounded up like the Gate does.
pub fn face_value_usdc_atomic(tokens_wad: U256) -> u64 {
    u64::try_from(tokens_wad.div_ceil(U256::from(WAD_PER_USDC_ATOMIC))).unwrap_or(u64::MAX)
}

/// Returns the largest number of tokens with this face value.
pub fn tokens_of_face_value(usdc_atomic: u64) -> U256 {
    U256::from(usdc_atomic) * U256::from(WAD_PER_USDC_ATOMIC)
}

/// One of an account's delegations, with the state of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Cap on the cost of one buy.
    pub per_trade_usdc_atomic: u64,
    /// Cap on the cost of all buys within a window of 24 hours.
    pub daily_usdc_atomic: u64,
    /// Cost of the buys within the current window.
    pub spent_usdc_atomic: u64,
    /// The start of the window of buys, in Unix seconds.
    pub window_start_s: u64,
    /// Cap on the face value of one sale.
    pub sale_per_trade_usdc_atomic: u64,
    /// Cap on the face value of all sales within a window of 24 hours.
    pub sale_daily_usdc_atomic: u64,
    /// Face value of the sales within the current window.
    pub sold_usdc_atomic: u64,
    /// The start of the window of sales, in Unix seconds.
    pub sale_window_start_s: u64,
    /// The end of the delegation, in Unix seconds; 0 if there is none.
    pub expiry_s: u64,
    /// The highest used nonce; 0 if none was used, because nonces start at 1.
    pub nonce_top: u32,
    /// Bit `i` is set if the nonce `nonce_top - 1 - i` is used.
    pub nonce_bitmap: u32,
}

impl Policy {
    /// Returns true if the delegation is valid at `now_s` (Unix seconds). Does not check the caps.
    pub fn is_live(&self, now_s: u64) -> bool {
        self.expiry_s != 0 && now_s <= self.expiry_s
    }

    /// Returns the face value that the key can still sell at `now_s` (Unix seconds).
    pub const fn sale_left_usdc_atomic(&self, now_s: u64) -> u64 {
        let is_over = now_s >= self.sale_window_start_s + POLICY_WINDOW_S;
        let sold = if is_over { 0 } else { self.sold_usdc_atomic };
        self.sale_daily_usdc_atomic.saturating_sub(sold)
    }
}

/// An executor's hourly cap on the net amount that leaves accounts. Buys use the cap, sales restore
/// it, and time restores the whole cap evenly within one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorVolume {
    /// `u64::MAX` means no cap; 0 means that the address is not an executor.
    pub cap_usdc_atomic: u64,
    /// The used part of the cap at `as_of_s`.
    pub used_usdc_atomic: u64,
    /// The newest block's time, in Unix seconds.
    pub as_of_s: u64,
}

impl ExecutorVolume {
    /// Returns the amount that buys may still cost at `now_s` (Unix seconds); `None` if there is no
    /// cap.
    pub fn left(&self, now_s: u64) -> Option<u64> {
        if self.cap_usdc_atomic == u64::MAX {
            return None;
        }
        // The executing block's time may be behind the clock. Count less time, so that the result
        // never exceeds what the Gate allows.
        let elapsed = now_s.saturating_sub(self.as_of_s + CLOCK_MARGIN_S).min(VOLUME_WINDOW_S);
        let back = u128::from(self.cap_usdc_atomic) * u128::from(elapsed) / u128::from(VOLUME_WINDOW_S);
        let used = self.used_usdc_atomic.saturating_sub(u64::try_from(back).unwrap_or(u64::MAX));
        Some(self.cap_usdc_atomic.saturating_sub(used))
    }
}

/// The time in which a fully used cap is restored, in seconds.
const VOLUME_WINDOW_S: u64 = 3_600;
/// The maximum difference by which a block's time may be behind the service's clock, in seconds.
///
/// The volume is read at the newest block, which may be old on a quiet chain. The transaction
/// executes in a new block, whose time may still be behind the clock.
const CLOCK_MARGIN_S: u64 = 15;

/// The state that decides whether a key can trade for an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountState {
    /// True if the account's contract exists.
    pub provisioned: bool,
    /// The account's USDC balance.
    pub usdc_balance_atomic: U256,
    /// The amount of USDC that the Gate may move from the account.
    pub gate_allowance_atomic: U256,
    pub policy: Policy,
}

impl AccountState {
    /// Returns true if the account allows the key to spend at `now_s` (Unix seconds). Does not
    /// check caps and balance.
    pub fn lets_spend(&self, now_s: u64) -> bool {
        self.policy.is_live(now_s) && !self.gate_allowance_atomic.is_zero()
    }
}

/// A market's times in Unix seconds, and its pending proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketSchedule {
    /// The time at which trading ended; `None` while trading is open.
    pub frozen_at_s: Option<u64>,
    /// The earliest time at which a cancel can be proposed; `None` while trading is open.
    pub cancellable_at_s: Option<u64>,
    /// The latest time at which a result can be proposed.
    pub result_due_at_s: u64,
    /// True if the guardian froze the market: only the guardian can then unfreeze it.
    pub is_held: bool,
    pub proposal: Option<Proposal>,
}

/// A proposed result or cancel that has been neither vetoed nor finalized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub is_cancel: bool,
    /// The earliest time at which it can be finalized, in Unix seconds.
    pub finalizable_at_s: u64,
    /// The payment for one token of each outcome.
    pub payouts_wad: Vec<U256>,
}

/// The roles of a deployment and their holders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seats {
    /// Each role, in the order of [`Role::ALL`].
    pub all: [Seat; 4],
    /// The guardian's pending proposal of a new owner.
    pub recovery: Option<RoleProposal>,
    /// True if the resolver has lost its power over markets until a successor accepts.
    pub is_resolver_suspended: bool,
    /// The seconds that a proposal waits.
    pub delay_s: u32,
}

/// A role and its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    pub role: Role,
    pub holder: Address,
    /// The owner's pending proposal of a new holder.
    pub proposal: Option<RoleProposal>,
}

/// A proposed holder of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleProposal {
    /// The address that must accept.
    pub to: Address,
    /// The time from which it can accept, Unix seconds.
    pub acceptable_at_s: u64,
}

impl RoleProposal {
    pub(super) fn of(to: Address, acceptable_at_s: u64) -> Option<Self> {
        (!to.is_zero()).then_some(Self { to, acceptable_at_s })
    }
}

/// The state of an address in the Gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorState {
    pub address: Address,
    /// The hourly cap and its use; `None` if the address is not an executor.
    pub volume: Option<ExecutorVolume>,
    pub is_paused: bool,
    /// The proposal for the address. It cannot take effect if its proposer is not the owner any
    /// more.
    pub proposal: Option<ExecutorProposal>,
}

/// A proposed executor, or a proposed cap for an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorProposal {
    /// The hourly cap; `u64::MAX` is no cap.
    pub hourly_cap_usdc_atomic: u64,
    /// The time from which the proposal can take effect, Unix seconds.
    pub enactable_at_s: u64,
}

/// Returns the hub's token id of an outcome: `market_id << 8 | outcome`.
pub fn token_id(market_id: u64, outcome: u8) -> U256 {
    (U256::from(market_id) << 8) | U256::from(outcome)
}

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
    fn a_lowered_cap_leaves_zero_and_no_cap_leaves_none() {
        let volume = ExecutorVolume { cap_usdc_atomic: 100, used_usdc_atomic: 70, as_of_s: 1_000 };
        assert_eq!(volume.left(1_000), Some(30));
        assert_eq!(ExecutorVolume { cap_usdc_atomic: 50, ..volume }.left(1_000), Some(0));
        assert_eq!(ExecutorVolume { cap_usdc_atomic: u64::MAX, ..volume }.left(1_000), None);
    }

    #[test]
    fn a_cap_refills_evenly_within_an_hour_and_never_early() {
        let volume = ExecutorVolume { cap_usdc_atomic: 100, used_usdc_atomic: 90, as_of_s: 1_000 };
        let left = |elapsed: u64| volume.left(1_000 + CLOCK_MARGIN_S + elapsed);
        assert_eq!([0, 35, 36, 1_800, 3_600, 90_000].map(left), [10, 10, 11, 60, 100, 100].map(Some));
    }

    #[test]
    fn the_face_value_of_tokens_is_rounded_up() {
        let face = |tokens: u128| face_value_usdc_atomic(U256::from(tokens));
        assert_eq!([0, 1, 1_000_000_000_000, 1_000_000_000_001].map(face), [0, 1, 1, 2]);
        assert_eq!(face_value_usdc_atomic(U256::MAX), u64::MAX);
        assert_eq!(face_value_usdc_atomic(tokens_of_face_value(7)), 7);
    }

    #[test]
    fn the_sale_cap_is_whole_again_after_a_day() {
        let policy = Policy {
            sale_daily_usdc_atomic: 100,
            sold_usdc_atomic: 70,
            sale_window_start_s: 1_000,
            ..Policy::default()
        };
        assert_eq!([1_000, 87_399, 87_400].map(|now| policy.sale_left_usdc_atomic(now)), [30, 30, 100]);
    }
}
