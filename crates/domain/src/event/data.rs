//! The payloads of events. Amounts are decimal strings, as everywhere in the API. Fields without a
//! value in the current state are omitted.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use serde::Serialize;

use crate::ids::{CorrelationId, KeyId, MarketId, RedemptionId, TradeId};
use crate::market::MarketStatus;
use crate::trade::{AmountType, Side, State, Status};
use crate::{Timestamp, Usdc, Wad};

/// The data of a trade that every event about it contains. It excludes the confirmation token of a
/// held trade.
#[derive(Debug, Clone, Copy)]
pub struct TradeData<'a> {
    pub trade_id: TradeId,
    pub market_id: MarketId,
    pub outcome_index: u8,
    /// The amount as sent; empty if the whole balance was sold without an amount.
    pub amount: &'a str,
    pub amount_type: AmountType,
    pub side: Side,
    /// The id of its trace.
    pub correlation_id: CorrelationId,
    /// The caller's metadata.
    pub metadata: &'a BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    trade_id: TradeId,
    market_id: MarketId,
    outcome_index: u8,
    amount: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_type: Option<AmountType>,
    side: Side,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_out: Option<Wad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    correlation_id: CorrelationId,
    metadata: &'a BTreeMap<String, String>,
}

impl<'a> TradeData<'a> {
    /// Returns the payload of an event that moves the trade to `state`.
    pub fn told(self, state: &'a State) -> impl Serialize + 'a {
        let (mut tx_hash, mut tokens_out, mut expires_at) = (None, None, None);
        let (mut error_code, mut error_message) = (None, None);
        match state {
            State::PendingConfirmation { expires_at: at } => expires_at = Some(*at),
            State::Pending | State::Validating | State::Executing => {}
            State::Completed(settlement) => {
                (tx_hash, tokens_out) = (Some(settlement.tx_hash), Some(settlement.tokens));
            }
            State::Failed(failure) => {
                tx_hash = failure.tx_hash;
                (error_code, error_message) = (Some(failure.code.as_str()), Some(failure.message.as_str()));
            }
            State::Rejected(refusal) => {
                (error_code, error_message) = (Some(refusal.reason.as_str()), Some(refusal.reason.message()));
            }
        }
        Told {
            trade_id: self.trade_id,
            market_id: self.market_id,
            outcome_index: self.outcome_index,
            // A sale of everything may have no amount.
            amount: (!self.amount.is_empty()).then_some(self.amount),
            // `usdc` is the default of requests: omit it here too.
            amount_type: (self.amount_type != AmountType::Usdc).then_some(self.amount_type),
            side: self.side,
            status: state.status(),
            tx_hash: tx_hash.map(|hash| hash.to_string()),
            tokens_out,
            error_code,
            error_message,
            expires_at,
            correlation_id: self.correlation_id,
            metadata: self.metadata,
        }
    }
}

/// The payload of a paid claim.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimData {
    pub redemption_id: RedemptionId,
    pub market_id: MarketId,
    pub outcome_index: u8,
    /// The payment, atomic.
    pub amount: Usdc,
    /// The redeemed tokens.
    pub tokens: Wad,
    /// The transaction with the payment.
    pub tx_hash: Option<B256>,
    /// The id of its trace.
    pub correlation_id: CorrelationId,
}

/// The payload of a settled market.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarketData {
    pub market_id: MarketId,
    /// RESOLVED or CANCELLED.
    pub status: MarketStatus,
    /// The payout of one token of each outcome in USDC, WAD; null if the market was cancelled.
    pub payouts: Option<Vec<Wad>>,
    /// The time of the settlement.
    pub resolved_at: Timestamp,
}

/// The payload of a settled position that pays.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PositionData {
    pub market_id: MarketId,
    pub outcome_index: u8,
    /// The tokens held.
    pub tokens: Wad,
    /// The payment of a claim, atomic.
    pub claimable_usdc: Usdc,
}

/// The payload of a test event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestData {
    /// Always true, to distinguish tests from real events.
    pub test: bool,
    /// The key whose receiver is tested.
    pub api_key_id: KeyId,
}
