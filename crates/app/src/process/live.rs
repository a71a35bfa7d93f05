//! What open streams show of a market: its prices, and its last events. Both are bytes that are
//! written once and shared by all streams.

use std::sync::OnceLock;

use bytes::Bytes;
use domain::Timestamp;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use store::market_statuses::StatusChange;
use store::movements::Movement;

/// The time after which a market is read again although nothing woke its streams, in milliseconds.
const STALE_MS: i64 = 15_000;

/// The state of a market as of a block.
#[derive(Debug)]
pub struct MarketPrices {
    pub market_id: MarketId,
    pub status: MarketStatus,
    /// By outcome: its index, and its price from 0 to 1.
    pub prices: Vec<(u8, f64)>,
    pub block: u64,
    /// The time of the block.
    pub at: Timestamp,
    /// The time from which the market, if it is open, no longer trades.
    pub ends_at: Timestamp,
    pub read_at: Timestamp,
    pub bytes: SharedBytes,
}

impl MarketPrices {
    /// Returns whether a stream would show the same.
    pub fn shows_the_same(&self, other: &Self) -> bool {
        self.status == other.status && self.prices == other.prices
    }

    /// Returns whether to read the market again: its trading has ended, or a wake-up may have been
    /// missed.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let has_ended = self.status == MarketStatus::Open && self.ends_at <= now;
        has_ended || now.since_ms(self.read_at) >= STALE_MS
    }
}

/// One event of a market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    Trade(Box<Movement>),
    Status(StatusChange),
}

impl Happening {
    /// Returns the event's position on chain. Positions sort in the chain's order.
    pub fn id(&self) -> &str {
        match self {
            Self::Trade(movement) => &movement.id,
            Self::Status(change) => &change.id,
        }
    }
}

/// The last events of a market.
#[derive(Debug)]
pub struct MarketTail {
    /// The events are all that follow this position, up to `position`.
    pub after: String,
    /// In the chain's order.
    pub happenings: Vec<Happening>,
    pub position: String,
    pub read_at: Timestamp,
    /// All events, as a stream sends them.
    pub bytes: SharedBytes,
}

impl MarketTail {
    /// Returns whether a wake-up may have been missed.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        now.since_ms(self.read_at) >= STALE_MS
    }
}

/// Bytes that the first stream writes, and the others share.
#[derive(Debug, Default)]
pub struct SharedBytes(OnceLock<Bytes>);

impl SharedBytes {
    /// Returns the bytes, written by `write` if they are not yet.
    pub fn get(&self, write: impl FnOnce() -> Bytes) -> Bytes {
        self.0.get_or_init(write).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_bytes_are_written_once() {
        let bytes = SharedBytes::default();
        let first = bytes.get(|| Bytes::from_static(b"a"));
        let second = bytes.get(|| panic!("written twice"));
        assert_eq!((first.as_ptr(), first.len()), (second.as_ptr(), second.len()));
    }
}
