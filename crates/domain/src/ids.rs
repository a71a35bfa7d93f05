//! A newtype for each kind of id, so that one cannot be passed for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

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

            /// Accepts only the hyphenated form, in lower or upper case.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                // `Uuid::try_parse` also accepts the simple, braced and URN forms.
                if text.len() != 36 {
                    return Err(ParseIdError);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError)
            }
        }
    )*};
}

uuid_id! {
    /// A person or program that trades. Owns one smart account and up to five active keys.
    UserId,
    /// The id of an API key's row, not the key itself.
    KeyId,
    /// A trade. The intent and the chain's events contain the same 16 bytes.
    TradeId,
    /// A market. Its 16 bytes, right-aligned in 32, are the market's reference on chain.
    MarketId,
    /// A thread: a collection of markets with a time window.
    ThreadId,
    /// An organization, which owns threads.
    OrganizationId,
    /// A partner of an organization.
    PartnerId,
    /// A signed batch of intents or redemptions, or the transaction of one delegation change.
    BatchId,
    /// A change of a key's delegation on chain.
    DelegationChangeId,
    /// A batch of calls that an owner of an account signs.
    OwnerActId,
    /// An act of an admin in the web application.
    AdminActId,
    /// A redemption: the claim of a settled position.
    RedemptionId,
    /// An event, as identified by webhook receivers and readers of the feed.
    EventId,
    /// A passkey or wallet that a user signs in with.
    CredentialId,
    /// A session of the web application. It is no secret: only its token signs in.
    SessionId,
}

/// The id that links a trade to its trace: 32 lower-case hex digits. It is also a valid W3C trace
/// id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CorrelationId(pub u128);

impl CorrelationId {
    /// Returns the default id of a trade's trace: the trade's own id in hexadecimal.
    pub const fn of(id: TradeId) -> Self {
        Self(id.0.as_u128())
    }

    /// Returns the trade id with the same bits. A trade with this id exists only if the correlation
    /// id was derived from it.
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
        // `from_str_radix` also accepts a sign and upper-case digits.
        let well_formed =
            text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match u128::from_str_radix(text, 16) {
            // The W3C Trace Context standard forbids a trace id of zeros.
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
    fn ids_round_trip_through_text() {
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
