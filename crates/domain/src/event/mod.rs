//! Events: what happened to a user's trades, claims and positions, as receivers and readers of the feed are told of it.
//!
//! An event's id follows from what it tells, so that one happening has one event however often the step that tells it is
//! run. Its body is made once, when it is written, and is the same bytes in every delivery and in the feed.

mod data;
mod id;
mod position;

pub use data::{ClaimData, MarketData, PositionData, TestData, TradeData};
pub use position::{FIRST_GENERATION, FeedPosition, ParsePositionError};

use serde::Serialize;

use crate::Timestamp;
use crate::ids::EventId;
use crate::trade::{State, Status};
use crate::version::VERSIONS;
use crate::words::words;

words! {
    /// What an event tells.
    EventKind, UnknownEventKind {
        /// A trade of high value waits for its confirmation.
        ConfirmationRequired = "trade.confirmation-required",
        /// A trade is completed.
        TradeCompleted = "trade.completed",
        /// A trade has failed.
        TradeFailed = "trade.failed",
        /// The risk engine has refused a trade.
        TradeRejected = "trade.rejected",
        /// A trade has any other status from now on.
        StatusChanged = "trade.status-changed",
        /// A claim was paid.
        RedemptionCompleted = "redemption.completed",
        /// A market in which the user has a position has its result, or is cancelled.
        MarketResolved = "market.resolved",
        /// A settled position pays, and nobody has claimed it.
        PositionClaimable = "position.claimable",
        /// Sent because the user asked for it, to try a receiver.
        Test = "webhook.test",
    }
}

impl EventKind {
    /// Whether it is posted to the key's URL. What is not is found in the feed alone.
    pub const fn is_delivered(self) -> bool {
        self.is_basic() || matches!(self, Self::Test)
    }

    /// Whether the feed carries it without being asked to.
    pub const fn is_basic(self) -> bool {
        matches!(
            self,
            Self::ConfirmationRequired | Self::TradeCompleted | Self::TradeFailed | Self::TradeRejected
        )
    }

    /// The event of a trade that has `status` from now on.
    pub const fn of_status(status: Status) -> Self {
        match status {
            Status::PendingConfirmation => Self::ConfirmationRequired,
            Status::Completed => Self::TradeCompleted,
            Status::Failed => Self::TradeFailed,
            Status::Rejected => Self::TradeRejected,
            Status::Pending | Status::Validating | Status::Executing => Self::StatusChanged,
        }
    }

    /// The event of a trade that is in `state` from now on.
    pub const fn of(state: &State) -> Self {
        Self::of_status(state.status())
    }
}

/// What every event is wrapped in.
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

/// The body of an event, as JSON.
///
/// # Errors
/// Where `data` cannot be written as JSON, which none of this module's can be.
pub fn body<D: Serialize>(
    id: EventId,
    kind: EventKind,
    created_at: Timestamp,
    data: &D,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Envelope { id, kind, api_version: VERSIONS.current, created_at, data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{MarketId, TradeId};
    use crate::trade::{AmountType, Failure, Refusal, Settlement, Side};
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
    fn a_trades_events_carry_what_is_known_in_its_state() {
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
            State::Rejected(Refusal { reason: crate::risk::RiskRefusal::PriceMoved }),
        ];
        insta::assert_snapshot!(states.iter().map(told).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn every_status_has_one_event_and_the_four_of_the_contract_are_basic_and_delivered() {
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
