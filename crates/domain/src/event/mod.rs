//! Events about a user's trades, claims and positions, for webhook receivers and readers of the
//! feed.
//!
//! An event's id is derived from its subject, so that repeating a step does not create a second
//! event. The body is created once, when the event is written. Deliveries and the feed contain the
//! same bytes.

mod data;
mod id;
mod position;

pub use crate::event_kind::{EventKind, UnknownEventKind};
pub use data::{ClaimData, MarketData, PositionData, TestData, TradeData};
pub use position::{FIRST_GENERATION, FeedPosition, ParsePositionError};

use serde::Serialize;

use crate::Timestamp;
use crate::ids::{EventId, KeyId};
use crate::trade::{State, Status};
use crate::version::VERSIONS;

impl EventKind {
    /// Returns the event type for a trade that reached `status`.
    pub const fn of_status(status: Status) -> Self {
        match status {
            Status::PendingConfirmation => Self::ConfirmationRequired,
            Status::Completed => Self::TradeCompleted,
            Status::Failed => Self::TradeFailed,
            Status::Rejected => Self::TradeRejected,
            Status::Pending | Status::Validating | Status::Executing => Self::StatusChanged,
        }
    }

    /// Returns the event type for a trade that reached `state`.
    pub const fn of(state: &State) -> Self {
        Self::of_status(state.status())
    }
}

/// The outer object of every event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, D> {
    id: EventId,
    #[serde(rename = "type")]
    kind: EventKind,
    api_version: &'a str,
    created_at: Timestamp,
    data: &'a D,
}

/// Serializes an event as JSON.
///
/// # Errors
///
/// If `data` cannot be serialized. The payloads of this module always can.
pub fn body<D: Serialize>(
    id: EventId,
    kind: EventKind,
    created_at: Timestamp,
    data: &D,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Envelope { id, kind, api_version: VERSIONS.current, created_at, data })
}

/// Returns an event as the feed shows it: its body with its sequence number and the key that caused it.
pub fn feed_body(sequence: u64, key_id: Option<KeyId>, body: &str) -> String {
    let key = key_id.map_or("null".to_owned(), |id| format!("\"{id}\""));
    // Insert the members textually: parsing and serializing could change the bytes.
    let members = body.strip_prefix('{').unwrap_or_default();
    format!("{{\"sequence\":{sequence},\"apiKeyId\":{key},{members}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{MarketId, TradeId};
    use crate::trade::{AmountType, Failure, RiskRejection, Settlement, Side};
    use crate::{ErrorCode, Usdc, Wad};
    use std::collections::BTreeMap;
    use uuid::Uuid;

    const AT: Timestamp = Timestamp::from_ms(1_777_464_000_123);
    const TRADE: TradeId = TradeId(Uuid::from_u128(0x018f_0000_0000_7000_8000_0000_0000_0002));

    fn told(state: &State) -> String {
        let metadata = BTreeMap::from([("desk".to_owned(), "alpha".to_owned())]);
        let data = TradeData {
            trade_id: TRADE,
            market_id: MarketId(Uuid::from_u128(1)),
            outcome_index: 1,
            amount: "25.00",
            amount_type: AmountType::Usdc,
            side: Side::Buy,
            correlation_id: crate::ids::CorrelationId::of(TRADE),
            metadata: &metadata,
        };
        let kind = EventKind::of(state);
        let id = EventId::of_trade(TRADE, state.status(), AT);
        let json: serde_json::Value =
            serde_json::from_str(&body(id, kind, AT, &data.told(state)).unwrap()).unwrap();
        serde_json::to_string_pretty(&json).unwrap()
    }

    #[test]
    fn a_trade_event_has_the_fields_known_in_its_status() {
        let settlement = Settlement {
            tx_hash: alloy_primitives::B256::repeat_byte(0xab),
            block_number: 7,
            usdc: Usdc::from_atomic(25_000_000),
            tokens: Wad::ZERO,
            fee: Usdc::from_atomic(500_000),
        };
        let failure = |tx_hash| Failure {
            code: ErrorCode::InsufficientBalance,
            message: "The smart account lacks USDC.".into(),
            tx_hash,
        };
        let states = [
            State::PendingConfirmation { expires_at: AT.plus_ms(300_000) },
            State::Pending,
            State::Executing,
            State::Completed(settlement),
            State::Failed(failure(None)),
            State::Failed(failure(Some(alloy_primitives::B256::repeat_byte(1)))),
            State::Rejected(RiskRejection { reason: crate::risk::RiskRefusal::PriceMoved }),
        ];
        insta::assert_snapshot!(states.iter().map(told).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn every_status_has_one_event_and_four_are_delivered() {
        let basic: Vec<_> =
            EventKind::ALL.iter().filter(|kind| kind.is_basic()).map(|kind| kind.as_str()).collect();
        assert_eq!(
            basic,
            ["trade.confirmation-required", "trade.completed", "trade.failed", "trade.rejected"]
        );
        for status in Status::ALL {
            let kind = EventKind::of_status(*status);
            assert_eq!(kind.is_basic(), status.is_terminal() || *status == Status::PendingConfirmation);
            assert_eq!(kind.is_delivered(), kind.is_basic(), "{kind}");
        }
        assert!(EventKind::Test.is_delivered() && !EventKind::Test.is_basic());
    }
}
