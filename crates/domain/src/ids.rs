//! A newtype per id, so that one is never passed for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text is not an id of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a well-formed id")]
pub struct ParseIdError;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0.as_hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            /// Accepts the hyphenated lower- or upper-case form alone.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                if text.len() != 36 {
                    return Err(ParseIdError);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError)
            }
        }
    )*};
}

uuid_id! {
    /// A person or program that trades; owns one smart account and up to five active keys.
    UserId,
    /// An API key's row; never the key itself.
    KeyId,
    /// A trade. Its 16 bytes also travel in the intent and come back in the chain's event.
    TradeId,
    /// A market. Its 16 bytes, right-aligned in 32, are the market's reference on chain.
    MarketId,
    /// A thread: a collection of markets with a time window.
    ThreadId,
    /// An organization, which owns threads.
    OrganizationId,
    /// A partner of an organization.
    PartnerId,
    /// One signed batch of intents or redemptions, or the transaction that carries one change of a delegation.
    BatchId,
    /// A change of a key's delegation on chain.
    DelegationChangeId,
    /// A redemption: the claim of a settled position.
    RedemptionId,
    /// An event: what receivers of webhooks and readers of the feed know it by.
    EventId,
}

/// The id that links a trade to its trace: 32 lower-case hex digits, which makes it a W3C trace id too.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CorrelationId(pub u128);

impl CorrelationId {
    /// The id of a trade's trace where its caller names none: the trade's own, in hexadecimal.
    pub const fn of(id: TradeId) -> Self {
        Self(id.0.as_u128())
    }

    /// The trade whose own id this is, if there is one.
    pub const fn trade_id(self) -> TradeId {
        TradeId(Uuid::from_u128(self.0))
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CorrelationId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let well_formed =
            text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match u128::from_str_radix(text, 16) {
            Ok(id) if well_formed && id != 0 => Ok(Self(id)),
            _ => Err(ParseIdError),
        }
    }
}

impl Serialize for CorrelationId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_what_it_writes() {
        let id = TradeId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn other_spellings_of_a_uuid_are_not_ids() {
        for text in ["", "1", "{01900000-0000-7000-8000-000000000001}", "01900000000070008000000000000001"] {
            assert_eq!(text.parse::<TradeId>(), Err(ParseIdError), "{text}");
        }
    }

    #[test]
    fn a_correlation_id_is_a_w3c_trace_id() {
        let id = CorrelationId(0xab);
        assert_eq!(id.to_string(), "000000000000000000000000000000ab");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["0".repeat(32), "A".repeat(32), "1".repeat(31)] {
            assert_eq!(text.parse::<CorrelationId>(), Err(ParseIdError), "{text}");
        }
    }
}
