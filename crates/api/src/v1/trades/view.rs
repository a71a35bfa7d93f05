//! Trades as the trading API returns them.

use std::collections::BTreeMap;

use app::Ctx;
use app::trades::Confirmation;
use domain::ids::{CorrelationId, MarketId, TradeId};
use domain::trade::{AmountType, Side, State, Status};
use domain::{Timestamp, Usdc, Wad};
use presentation::numbers;
use serde::Serialize;
use store::trades::Trade;
use utoipa::ToSchema;

use crate::openapi::formats::{ClientRequestId, DecimalAmount, Metadata, TxHash};

/// A trade. Values that a later status sets are null until then.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trade)]
#[serde(rename_all = "camelCase")]
pub struct TradeRecord {
    id: TradeId,
    status: Status,
    correlation_id: CorrelationId,
    created_at: Timestamp,
    updated_at: Timestamp,
    completed_at: Option<Timestamp>,
    failed_at: Option<Timestamp>,
    market_id: MarketId,
    outcome_index: u8,
    /// The amount as it was sent. Null if `amountType` is `all` and no amount was sent.
    #[schema(value_type = Option<DecimalAmount>)]
    amount: Option<String>,
    amount_type: AmountType,
    side: Side,
    /// The maximum slippage from the quote at acceptance, in hundredths of a percent (0 to 10000):
    /// the bound of the request, or the service's default. Null if the request bounds the price
    /// only by `minTokensOut` or `maxTokensIn`.
    #[schema(minimum = 0, maximum = 10000)]
    max_slippage_bps: Option<u16>,
    #[schema(value_type = Metadata)]
    metadata: BTreeMap<String, String>,
    #[schema(value_type = Option<ClientRequestId>)]
    client_request_id: Option<String>,
    #[schema(value_type = Option<TxHash>)]
    tx_hash: Option<String>,
    /// Outcome tokens received by a buy or given by a sale.
    tokens_out: Option<Wad>,
    /// USDC paid by a buy with the fee, or received from a sale after it.
    usdc_amount: Option<Usdc>,
    fee: Option<Usdc>,
    /// USDC per token, fee included.
    effective_price: Option<f64>,
    /// The error code of a failed trade, or the risk engine's reason for a rejected one.
    error_code: Option<&'static str>,
    error_message: Option<String>,
    status_history: Vec<HistoryEntry>,
    chain: Option<ChainRecord>,
    /// Only set if the trade was lost when data was restored and was recovered from the chain. Its
    /// metadata, clientRequestId and the caller's own correlation id are unknown.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<TradeOrigin>,
    /// Only in the 202 response that created a held trade, and in its replays. Not if an agent
    /// created the trade.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation: Option<ConfirmationRecord>,
    /// Instead of confirmation, if an agent created the trade: the page on which the account's owner
    /// confirms it.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation_page: Option<ConfirmationPageRecord>,
}

/// The origin of a trade's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TradeOrigin {
    /// The record was lost and was recovered from the chain. Values that only the request had are
    /// unknown.
    Recovered,
}

/// The token that confirms a held trade.
#[derive(Serialize, ToSchema)]
#[schema(as = Confirmation)]
#[serde(rename_all = "camelCase")]
struct ConfirmationRecord {
    token: String,
    expires_at: Timestamp,
}

/// The page on which the account's owner confirms a held trade.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfirmationPage, example = json!({
    "url": "https://foretell.example/trades/0198f3a0-5d4e-7bb8-9203-0dbc2bcaba32",
    "expiresAt": "2027-01-15T08:05:00.000Z",
}))]
#[serde(rename_all = "camelCase")]
struct ConfirmationPageRecord {
    url: String,
    /// The trade fails if nobody has confirmed it by then.
    expires_at: Timestamp,
}

/// Omits the token, so that it does not appear in logs.
impl std::fmt::Debug for ConfirmationRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConfirmationRecord({})", self.expires_at)
    }
}

/// The time at which the trade reached a status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TradeStatusChange)]
struct HistoryEntry {
    status: Status,
    at: Timestamp,
}

/// The block in which the trade was executed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TradeChain)]
#[serde(rename_all = "camelCase")]
struct ChainRecord {
    chain_id: u64,
    block_number: u64,
    /// The number of confirmations at which a trade is final. A completed trade has reached it.
    confirmations: u64,
}

/// The finality settings of the chain, which every record contains.
#[derive(Debug, Clone, Copy)]
pub struct FinalitySettings {
    chain_id: u64,
    confirmations: u64,
}

impl From<&Ctx> for FinalitySettings {
    fn from(ctx: &Ctx) -> Self {
        Self { chain_id: ctx.chain.chain_id(), confirmations: ctx.confirmations() }
    }
}

impl TradeRecord {
    /// Builds the record of the current state of `trade`, with its status history.
    pub fn now(trade: Trade, history: Vec<(Status, Timestamp)>, finality: FinalitySettings) -> Self {
        let (settlement, failure, refusal) = match &trade.state {
            State::Completed(settlement) => (Some(settlement), None, None),
            State::Failed(failure) => (None, Some(failure), None),
            State::Rejected(refusal) => (None, None, Some(refusal)),
            _ => (None, None, None),
        };
        let tx_hash = settlement.map(|s| s.tx_hash).or(failure.and_then(|failure| failure.tx_hash));
        let error_message = failure.map(|failure| failure.message.clone());
        Self {
            id: trade.id,
            status: trade.state.status(),
            correlation_id: trade.correlation_id,
            created_at: trade.created_at,
            updated_at: trade.updated_at,
            completed_at: settlement.and(trade.ended_at),
            // Rejected trades have failed too.
            failed_at: if settlement.is_none() { trade.ended_at } else { None },
            tx_hash: tx_hash.map(|hash| hash.to_string()),
            tokens_out: settlement.map(|s| s.tokens),
            usdc_amount: settlement.map(|s| s.usdc),
            fee: settlement.map(|s| s.fee),
            effective_price: settlement.and_then(|s| numbers::per_token(s.usdc, s.tokens)),
            error_code: failure.map(|failure| failure.code.as_str()).or(refusal.map(|r| r.reason.as_str())),
            error_message: error_message.or(refusal.map(|refusal| refusal.reason.message().to_owned())),
            status_history: history.into_iter().map(|(status, at)| HistoryEntry { status, at }).collect(),
            chain: settlement.map(|s| ChainRecord {
                chain_id: finality.chain_id,
                block_number: s.block_number,
                confirmations: finality.confirmations,
            }),
            origin: trade.recovered_at.map(|_| TradeOrigin::Recovered),
            market_id: trade.market_id,
            outcome_index: trade.outcome_index,
            // Empty if everything was sold.
            amount: (!trade.amount_text.is_empty()).then_some(trade.amount_text),
            amount_type: trade.amount_type,
            side: trade.side,
            max_slippage_bps: trade.max_slippage_bps,
            metadata: trade.metadata,
            client_request_id: trade.client_request_id,
            confirmation: None,
            confirmation_page: None,
        }
    }

    /// Builds the record that the trade's creation returned, whatever its current state is.
    pub fn as_created(trade: Trade, finality: FinalitySettings) -> Self {
        let at = trade.created_at;
        let state =
            trade.held_until.map_or(State::Pending, |expires_at| State::PendingConfirmation { expires_at });
        let history = vec![(state.status(), at)];
        let created = Trade { state, updated_at: at, ended_at: None, ..trade };
        Self::now(created, history, finality)
    }

    /// Builds the record that a held trade's creation returned, with its confirmation token or the
    /// page at `app_url` on which it is confirmed.
    pub fn held(trade: Trade, held: Confirmation, app_url: &str, finality: FinalitySettings) -> Self {
        let Confirmation { token, expires_at } = held;
        let url = format!("{app_url}/trades/{}", trade.id);
        let confirmation_page = token.is_none().then_some(ConfirmationPageRecord { url, expires_at });
        let confirmation = token.map(|token| ConfirmationRecord { token, expires_at });
        Self { confirmation, confirmation_page, ..Self::as_created(trade, finality) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ErrorCode;
    use domain::ids::{KeyId, UserId};
    use domain::risk::RiskRefusal;
    use domain::trade::{Failure, RiskRejection, Settlement};
    use uuid::Uuid;

    const FINALITY: FinalitySettings = FinalitySettings { chain_id: 31_337, confirmations: 1 };

    fn trade(state: State) -> Trade {
        let ended_at = state.status().is_terminal().then_some(Timestamp::from_ms(900));
        Trade {
            id: TradeId(Uuid::from_u128(1)),
            user_id: UserId(Uuid::from_u128(2)),
            key_id: KeyId(Uuid::from_u128(3)),
            account: alloy_primitives::Address::repeat_byte(0xbb),
            market_id: MarketId(Uuid::from_u128(4)),
            outcome_index: 1,
            side: Side::Buy,
            amount_text: "10.0".into(),
            amount_type: AmountType::Usdc,
            metadata: BTreeMap::from([("desk".into(), "7".into())]),
            client_request_id: None,
            request_hash: "aa".into(),
            correlation_id: CorrelationId(5),
            intent_side: 0,
            intent_usdc: Usdc::from_whole(10),
            intent_tokens: Wad::ZERO,
            max_slippage_bps: Some(200),
            volume: Usdc::from_whole(10),
            waiting_for: None,
            deadline: Timestamp::from_ms(600_000),
            key_index: 0,
            lane: 0,
            nonce: None,
            batch_id: None,
            reserved: Usdc::from_whole(10),
            state,
            held_until: None,
            created_at: Timestamp::from_ms(100),
            updated_at: Timestamp::from_ms(900),
            ended_at,
            recovered_at: None,
            is_from_agent: false,
        }
    }

    fn settled() -> Trade {
        trade(State::Completed(Settlement {
            tx_hash: Default::default(),
            block_number: 12,
            usdc: Usdc::from_whole(10),
            tokens: Wad::from_amount(Usdc::from_whole(16)),
            fee: Usdc::from_atomic(100_000),
        }))
    }

    #[test]
    fn a_completed_trade_has_the_documented_members() {
        let history =
            vec![(Status::Pending, Timestamp::from_ms(100)), (Status::Completed, Timestamp::from_ms(900))];
        let record = TradeRecord::now(settled(), history, FINALITY);
        insta::assert_snapshot!(serde_json::to_string_pretty(&record).unwrap());
    }

    #[test]
    fn a_replay_shows_the_trade_as_created() {
        let replayed = serde_json::to_string(&TradeRecord::as_created(settled(), FINALITY)).unwrap();
        let mut fresh = trade(State::Pending);
        fresh.updated_at = fresh.created_at;
        let created = TradeRecord::now(fresh, vec![(Status::Pending, Timestamp::from_ms(100))], FINALITY);
        assert_eq!(replayed, serde_json::to_string(&created).unwrap());
    }

    #[test]
    fn a_held_trade_starts_as_held_and_only_its_creation_shows_the_token() {
        let held = || Trade { held_until: Some(Timestamp::from_ms(300_100)), ..settled() };
        let created = TradeRecord::as_created(held(), FINALITY);
        assert_eq!(created.status, Status::PendingConfirmation);
        assert_eq!(created.status_history[0].status, Status::PendingConfirmation);
        assert!(serde_json::to_value(&created).unwrap().get("confirmation").is_none());

        let expires_at = Timestamp::from_ms(300_100);
        let confirmation = Confirmation { token: Some("ct_1".into()), expires_at };
        let record = TradeRecord::held(held(), confirmation, "", FINALITY);
        let expected = serde_json::json!({ "token": "ct_1", "expiresAt": "1970-01-01T00:05:00.100Z" });
        assert_eq!(serde_json::to_value(&record).unwrap()["confirmation"], expected);
        assert!(!format!("{record:?}").contains("ct_1"));
    }

    #[test]
    fn a_failed_trade_shows_its_reason_and_time() {
        let failure = Failure {
            code: ErrorCode::SlippageExceeded,
            message: "m".into(),
            tx_hash: Some(Default::default()),
        };
        let record = TradeRecord::now(trade(State::Failed(failure)), Vec::new(), FINALITY);
        assert_eq!(record.error_code, Some("SLIPPAGE_EXCEEDED"));
        assert!(record.failed_at.is_some() && record.completed_at.is_none() && record.tx_hash.is_some());
        assert!(record.tokens_out.is_none() && record.chain.is_none());
        let refusal = RiskRejection { reason: RiskRefusal::PriceMoved };
        let record = TradeRecord::now(trade(State::Rejected(refusal)), Vec::new(), FINALITY);
        assert_eq!(record.error_code, Some("price_moved"));
    }
}
