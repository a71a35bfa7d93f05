//! Reasons to delay the signing of accepted trades: the network fee is above the operator's
//! ceiling, or the contracts' hourly volume cap is used up. Signing them anyway would cost gas and
//! fail.

use std::collections::HashSet;

use alloy_primitives::Address;

use crate::money::Usdc;
use crate::words::words;

words! {
    /// The reason why a trade is not signed yet.
    HoldReason, UnknownHoldReason {
        /// The network fee is above the operator's ceiling.
        FeeCeiling = "fee_ceiling",
        /// The trades of the last hour have used the contracts' volume cap.
        HourlyVolume = "hourly_volume",
    }
}

impl HoldReason {
    /// Returns the failure message of a trade whose deadline passed while it was delayed.
    pub const fn expiry_message(self) -> &'static str {
        match self {
            Self::FeeCeiling => "The deadline passed while the chain's fees were above the operator's limit.",
            Self::HourlyVolume => "The deadline passed while the hourly volume of all trades was exhausted.",
        }
    }
}

/// The amount that the next trades may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Unlimited,
    /// At most this much in total.
    Usdc(Usdc),
    /// No trade may be signed.
    Nothing,
}

/// Decides, trade by trade, which ones fit into the available volume. A trade that does not fit
/// also delays later trades of its account, so that an account's trades stay in order. Smaller
/// trades of other accounts continue.
#[derive(Debug, Clone)]
pub struct Budget {
    room: Room,
    held_accounts: HashSet<Address>,
}

impl Budget {
    /// Creates a budget of which nothing is used yet.
    pub fn new(room: Room) -> Self {
        Self { room, held_accounts: HashSet::new() }
    }

    /// Returns the remaining room.
    pub const fn room(&self) -> Room {
        self.room
    }

    /// Returns true if trades of `usdc` in total fit and no account is delayed.
    pub fn admits_all(&self, usdc: Usdc) -> bool {
        match self.room {
            Room::Unlimited => true,
            Room::Usdc(left) => self.held_accounts.is_empty() && usdc <= left,
            Room::Nothing => false,
        }
    }

    /// Returns true if an account's next trade of `usdc` fits, and then uses its room.
    pub fn admit(&mut self, account: Address, usdc: Usdc) -> bool {
        match self.room {
            Room::Unlimited => true,
            Room::Usdc(left) if usdc <= left && !self.held_accounts.contains(&account) => {
                self.room = Room::Usdc(left.saturating_sub(usdc));
                true
            }
            Room::Usdc(_) => {
                // Also delays the account's later trades, so that they do not overtake this one.
                self.held_accounts.insert(account);
                false
            }
            Room::Nothing => false,
        }
    }

    /// Returns the reason why trades that do not fit are delayed.
    pub const fn reason(&self) -> HoldReason {
        match self.room {
            Room::Nothing => HoldReason::FeeCeiling,
            Room::Unlimited | Room::Usdc(_) => HoldReason::HourlyVolume,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::repeat_byte(1);
    const B: Address = Address::repeat_byte(2);
    const C: Address = Address::repeat_byte(3);

    #[test]
    fn a_trade_that_does_not_fit_delays_only_its_own_account() {
        let mut budget = Budget::new(Room::Usdc(Usdc::from_whole(100)));
        let asked = [(A, 60), (B, 50), (B, 1), (C, 40), (A, 1)];
        let admitted = asked.map(|(account, usdc)| budget.admit(account, Usdc::from_whole(usdc)));
        assert_eq!(admitted, [true, false, false, true, false]);
        assert_eq!(budget.room(), Room::Usdc(Usdc::ZERO));
    }

    #[test]
    fn no_cap_admits_every_trade_and_high_fees_admit_none() {
        let most = Usdc::from_atomic(i64::MAX as u64);
        assert!(Budget::new(Room::Unlimited).admit(A, most));
        let mut nothing = Budget::new(Room::Nothing);
        assert!(!nothing.admit(A, Usdc::ZERO) && !nothing.admits_all(Usdc::ZERO));
        assert_eq!(nothing.reason(), HoldReason::FeeCeiling);
    }

    #[test]
    fn the_room_is_used_up_to_the_micro_usdc() {
        let mut budget = Budget::new(Room::Usdc(Usdc::from_atomic(10)));
        assert!(budget.admits_all(Usdc::from_atomic(10)) && !budget.admits_all(Usdc::from_atomic(11)));
        assert!(!budget.admit(A, Usdc::from_atomic(11)));
        assert!(budget.admit(B, Usdc::from_atomic(10)));
        assert!(!budget.admits_all(Usdc::ZERO), "an account is held back");
    }
}
