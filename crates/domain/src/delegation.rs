//! Changes of a key's delegation on chain that the service makes by itself: it can revoke a delegation or reduce it, never
//! raise it.

use crate::Timestamp;
use crate::money::Usdc;
use crate::words::words;

words! {
    /// Where a change of a delegation stands.
    Status, UnknownStatus {
        /// Stored; no transaction carries it yet.
        Queued = "queued",
        /// In a signed transaction that is not final yet.
        Sent = "sent",
        /// In a final block.
        Mined = "mined",
        /// The chain had nothing to change: the key had no delegation, or a lower one.
        NotNeeded = "not_needed",
    }
}

words! {
    /// What a change does.
    Kind, UnknownKind {
        /// Ends the delegation.
        Revoke = "revoke",
        /// Lowers its caps or brings its end forward.
        Reduce = "reduce",
    }
}

/// A change of a delegation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Ends it.
    Revoke,
    /// Lowers what is above these values.
    Reduce(Ceilings),
}

/// What a delegation is lowered to. `None` leaves a value as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ceilings {
    /// The cap on one trade.
    pub per_trade: Option<Usdc>,
    /// The cap on 24 hours.
    pub daily: Option<Usdc>,
    /// When the delegation ends.
    pub expires_at: Option<Timestamp>,
}

impl Ceilings {
    /// Whether it changes nothing.
    pub const fn is_empty(&self) -> bool {
        self.per_trade.is_none() && self.daily.is_none() && self.expires_at.is_none()
    }
}

impl Change {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Revoke => Kind::Revoke,
            Self::Reduce(_) => Kind::Reduce,
        }
    }
}
