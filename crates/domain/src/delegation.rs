//! Changes that the service makes to a key's delegation on chain. It can revoke or reduce a
//! delegation, but never raise it.

use crate::Timestamp;
use crate::money::Usdc;
use crate::words::words;

words! {
    /// The status of a change.
    Status, UnknownStatus {
        /// Stored, but not in a transaction yet.
        Queued = "queued",
        /// In a signed transaction that is not final yet.
        Sent = "sent",
        /// In a final block.
        Mined = "mined",
        /// No transaction was necessary: the key had no delegation, or a lower one.
        NotNeeded = "not_needed",
    }
}

words! {
    /// The type of a change.
    Kind, UnknownKind {
        Revoke = "revoke",
        /// Lowers caps or brings the expiry forward.
        Reduce = "reduce",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelegationEdit {
    Revoke,
    /// Lowers each limit that is above these values.
    Reduce(Ceilings),
}

/// The new maximum of each limit. `None` leaves the limit unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ceilings {
    /// Cap on the cost of one buy.
    pub per_trade: Option<Usdc>,
    /// Cap on the cost of all buys within 24 hours.
    pub daily: Option<Usdc>,
    /// The end of the delegation.
    pub expires_at: Option<Timestamp>,
}

impl Ceilings {
    pub const fn is_empty(&self) -> bool {
        self.per_trade.is_none() && self.daily.is_none() && self.expires_at.is_none()
    }
}

impl DelegationEdit {
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Revoke => Kind::Revoke,
            Self::Reduce(_) => Kind::Reduce,
        }
    }
}
