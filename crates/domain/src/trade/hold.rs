//! What keeps accepted trades from being signed: the chain's fee is above the operator's ceiling, or the hour of the contracts'
//! volume cap has no room for them. Signed all the same, they would cost gas and fail.

use std::collections::HashSet;

use crate::money::Usdc;
use crate::words::words;

words! {
    /// What a trade waits for before it is signed.
    HoldReason, UnknownHoldReason {
        /// The chain asks more for gas than the operator pays.
        FeeCeiling = "fee_ceiling",
        /// The trades of this hour have moved as much as the contracts allow.
        HourlyVolume = "hourly_volume",
    }
}

impl HoldReason {
    /// Why a trade failed whose deadline came while it waited.
    pub const fn expiry_message(self) -> &'static str {
        match self {
            Self::FeeCeiling => {
                "The deadline passed while the chain's fees were above the service's ceiling."
            }
            Self::HourlyVolume => "The deadline passed while the hourly volume of all trades was used up.",
        }
    }
}

/// How much the next trades may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As much as they want.
    Unlimited,
    /// At most this much in all.
    Usdc(Usdc),
    /// No trade is signed.
    Nothing,
}

/// Decides which trades fit into the room, one after the other. A trade that does not fit holds back the later ones of its
/// account, so that an account's trades stay in order; smaller trades of other accounts go on.
#[derive(Debug, Clone)]
pub struct Budget {
    room: Room,
    held_accounts: HashSet<String>,
}

impl Budget {
    /// Nothing of the room is used.
    pub fn new(room: Room) -> Self {
        Self { room, held_accounts: HashSet::new() }
    }

    /// What is left.
    pub const fn room(&self) -> Room {
        self.room
    }

    /// Whether trades of `usdc` in all fit and no account is held back.
    pub fn admits_all(&self, usdc: Usdc) -> bool {
        match self.room {
            Room::Unlimited => true,
            Room::Usdc(left) => self.held_accounts.is_empty() && usdc <= left,
            Room::Nothing => false,
        }
    }

    /// Whether an account's next trade, which moves `usdc`, fits. If it does, its room is used.
    pub fn admit(&mut self, account: &str, usdc: Usdc) -> bool {
        match self.room {
            Room::Unlimited => true,
            Room::Usdc(left) if usdc <= left && !self.held_accounts.contains(account) => {
                self.room = Room::Usdc(left.saturating_sub(usdc));
                true
            }
            Room::Usdc(_) => {
                self.held_accounts.insert(account.to_owned());
                false
            }
            Room::Nothing => false,
        }
    }

    /// What the trades that do not fit wait for.
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

    #[test]
    fn smaller_trades_of_others_pass_a_trade_that_does_not_fit_and_its_accounts_later_ones_wait() {
        let mut budget = Budget::new(Room::Usdc(Usdc::from_whole(100)));
        let asked = [("a", 60), ("b", 50), ("b", 1), ("c", 40), ("a", 1)];
        let admitted = asked.map(|(account, usdc)| budget.admit(account, Usdc::from_whole(usdc)));
        assert_eq!(admitted, [true, false, false, true, false]);
        assert_eq!(budget.room(), Room::Usdc(Usdc::ZERO));
    }

    #[test]
    fn without_a_cap_every_trade_fits_and_above_the_fee_ceiling_none_does() {
        let most = Usdc::from_atomic(i64::MAX as u64);
        assert!(Budget::new(Room::Unlimited).admit("a", most));
        let mut nothing = Budget::new(Room::Nothing);
        assert!(!nothing.admit("a", Usdc::ZERO) && !nothing.admits_all(Usdc::ZERO));
        assert_eq!(nothing.reason(), HoldReason::FeeCeiling);
    }

    #[test]
    fn the_last_of_the_room_is_used_to_the_micro_usdc() {
        let mut budget = Budget::new(Room::Usdc(Usdc::from_atomic(10)));
        assert!(budget.admits_all(Usdc::from_atomic(10)) && !budget.admits_all(Usdc::from_atomic(11)));
        assert!(!budget.admit("a", Usdc::from_atomic(11)));
        assert!(budget.admit("b", Usdc::from_atomic(10)));
        assert!(!budget.admits_all(Usdc::ZERO), "an account is held back");
    }
}
