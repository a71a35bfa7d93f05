//! What events say. Amounts of money are decimal strings as everywhere; what does not exist in a state is left out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ids::{CorrelationId, KeyId, MarketId, RedemptionId, TradeId};
use crate::market::MarketStatus;
use crate::trade::{AmountType, Side, State, Status};
use crate::{Timestamp, Usdc, Wad};

/// What every event of a trade says of it. The token that confirms a held trade is not among it.
#[derive(Debug, Clone, Copy)]
pub struct TradeData<'a> {
    /// The trade.
    pub trade_id: TradeId,
    /// Its market.
    pub market_id: MarketId,
    /// Its outcome.
    pub outcome_index: u8,
    /// The amount as sent; empty where everything was sold without naming one.
    pub amount: &'a str,
    /// What the amount counts.
    pub amount_type: AmountType,
    /// Buy or sell.
    pub side: Side,
    /// The id of its trace.
    pub correlation_id: CorrelationId,
    /// The caller's own words.
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
    /// What is told of the trade when it is in `state` from now on.
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
            amount: (!self.amount.is_empty()).then_some(self.amount),
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

/// A claim that was paid.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimData {
    /// The claim.
    pub redemption_id: RedemptionId,
    /// The market.
    pub market_id: MarketId,
    /// The outcome.
    pub outcome_index: u8,
    /// What was paid, in atomic units.
    pub amount: Usdc,
    /// The tokens given for it.
    pub tokens: Wad,
    /// The transaction that paid it.
    pub tx_hash: Option<String>,
    /// The id of its trace.
    pub correlation_id: CorrelationId,
}

/// A market that has its result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarketData {
    /// The market.
    pub market_id: MarketId,
    /// RESOLVED or CANCELLED.
    pub status: MarketStatus,
    /// What each outcome pays of one USDC, WAD; null where the market was cancelled.
    pub payouts: Option<Vec<Wad>>,
    /// When it was settled.
    pub resolved_at: Timestamp,
}

/// A settled position that pays.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PositionData {
    /// The market.
    pub market_id: MarketId,
    /// The outcome.
    pub outcome_index: u8,
    /// The tokens held.
    pub tokens: Wad,
    /// What a claim pays for them, in atomic units.
    pub claimable_usdc: Usdc,
}

/// A test of a receiver.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestData {
    /// Always true: nothing has happened.
    pub test: bool,
    /// The key whose receiver is tried.
    pub api_key_id: KeyId,
}
