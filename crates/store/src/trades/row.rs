//! A trade's row.

use std::collections::BTreeMap;

use domain::event::{self, EventKind, TradeData};
use domain::ids::{BatchId, CorrelationId, EventId, KeyId, MarketId, TradeId, UserId};
use domain::risk::RiskRefusal;
use domain::trade::{AmountType, Failure, HoldReason, Refusal, Settlement, Side, State, Status};
use domain::{ErrorCode, Timestamp, Usdc, Wad};

use crate::events::NewEvent;
use crate::{Row, StoreError, Tx, params};

/// A trade as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trade {
    /// The trade's id.
    pub id: TradeId,
    /// Whose it is.
    pub user_id: UserId,
    /// The key it came with.
    pub key_id: KeyId,
    /// The smart account it trades from, lower-case hex.
    pub account: String,
    /// The market.
    pub market_id: MarketId,
    /// The outcome.
    pub outcome_index: u8,
    /// Buy or sell.
    pub side: Side,
    /// The amount as sent.
    pub amount_text: String,
    /// What the amount counts.
    pub amount_type: AmountType,
    /// The caller's own words.
    pub metadata: BTreeMap<String, String>,
    /// The caller's own id.
    pub client_request_id: Option<String>,
    /// The request's fingerprint, hex.
    pub request_hash: String,
    /// The id of its trace.
    pub correlation_id: CorrelationId,
    /// The contracts' number for the way to trade.
    pub intent_side: u8,
    /// The intent's USDC: exact or a bound, as its side says.
    pub intent_usdc: Usdc,
    /// The intent's tokens: exact or a bound, as its side says.
    pub intent_tokens: Wad,
    /// How far the price may be worse than the quote at acceptance, in hundredths of a percent; `None` if only the intent's own
    /// amounts bound it.
    pub max_slippage_bps: Option<u16>,
    /// When the intent is no longer wanted; enforced on chain.
    pub deadline: Timestamp,
    /// Which policy of the account it spends.
    pub key_index: u32,
    /// The executor's lane, by account.
    pub lane: u16,
    /// The intent's nonce, once it is executing.
    pub nonce: Option<u32>,
    /// The batch that carries it.
    pub batch_id: Option<BatchId>,
    /// The USDC that it is expected to move.
    pub volume: Usdc,
    /// What it waits for before it is signed; `None` if for nothing but its turn.
    pub waiting_for: Option<HoldReason>,
    /// What it holds of the key's daily cap: buys alone, zero once it has failed.
    pub reserved: Usdc,
    /// Where it stands.
    pub state: State,
    /// The end of its confirmation window, where it was held; it stays when the trade has moved on.
    pub held_until: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last moved.
    pub updated_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it was written again from the chain, if its row had been lost.
    pub recovered_at: Option<Timestamp>,
}

pub(super) const COLUMNS: &str = "id, user_id, key_id, account, market_id, outcome_index, side, amount_text, amount_type,
    metadata, client_request_id, request_hash, correlation_id, intent_side, intent_usdc_atomic, intent_tokens_wad,
    deadline_ms, key_index, lane, nonce, batch_id, reserved_usdc_atomic, status, confirmation_expires_at_ms, tx_hash,
    block_number, tokens_moved_wad, usdc_moved_atomic, fee_atomic, error_code, error_message, created_at_ms,
    updated_at_ms, ended_at_ms, recovered_at_ms, max_slippage_bps, volume_usdc_atomic, waiting_for";

/// How many columns [`COLUMNS`] names.
pub(super) const COUNT: usize = 38;

pub(super) fn from_row(row: &Row<'_>) -> Result<Trade, StoreError> {
    Ok(Trade {
        id: row.parse(0)?,
        user_id: row.parse(1)?,
        key_id: row.parse(2)?,
        account: row.text(3)?,
        market_id: row.parse(4)?,
        outcome_index: row.number(5)?,
        side: row.parse(6)?,
        amount_text: row.text(7)?,
        amount_type: row.parse(8)?,
        metadata: serde_json::from_str(row.str(9)?)
            .map_err(|_| row.corrupt(9, "not a JSON object of texts"))?,
        client_request_id: row.opt_text(10)?,
        request_hash: row.text(11)?,
        correlation_id: row.parse(12)?,
        intent_side: row.number(13)?,
        intent_usdc: row.usdc(14)?,
        intent_tokens: row.parse(15)?,
        max_slippage_bps: row.opt_number(35)?,
        volume: row.usdc(36)?,
        waiting_for: row.opt_parse(37)?,
        deadline: row.timestamp(16)?,
        key_index: row.number(17)?,
        lane: row.number(18)?,
        nonce: row.opt_number(19)?,
        batch_id: row.opt_parse(20)?,
        reserved: row.usdc(21)?,
        state: state(row)?,
        held_until: row.opt_timestamp(23)?,
        created_at: row.timestamp(31)?,
        updated_at: row.timestamp(32)?,
        ended_at: row.opt_timestamp(33)?,
        recovered_at: row.opt_timestamp(34)?,
    })
}

fn state(row: &Row<'_>) -> Result<State, StoreError> {
    let missing = |column| row.corrupt(column, "NULL in a status that has it");
    Ok(match row.parse::<Status>(22)? {
        Status::PendingConfirmation => {
            State::PendingConfirmation { expires_at: row.opt_timestamp(23)?.ok_or_else(|| missing(23))? }
        }
        Status::Pending => State::Pending,
        Status::Validating => State::Validating,
        Status::Executing => State::Executing,
        Status::Completed => State::Completed(Settlement {
            tx_hash: row.parse(24)?,
            block_number: row.number(25)?,
            tokens: row.parse(26)?,
            usdc: row.usdc(27)?,
            fee: row.usdc(28)?,
        }),
        Status::Failed => State::Failed(Failure {
            code: row.parse::<ErrorCode>(29)?,
            message: row.text(30)?,
            tx_hash: row.opt_parse(24)?,
        }),
        Status::Rejected => State::Rejected(Refusal { reason: row.parse::<RiskRefusal>(29)? }),
    })
}

impl Trade {
    /// The event that tells that the trade is in `state` since `at`.
    pub(super) fn event(&self, state: &State, at: Timestamp) -> Result<NewEvent, StoreError> {
        let told = TradeData {
            trade_id: self.id,
            market_id: self.market_id,
            outcome_index: self.outcome_index,
            amount: &self.amount_text,
            amount_type: self.amount_type,
            side: self.side,
            correlation_id: self.correlation_id,
            metadata: &self.metadata,
        };
        let (kind, id) = (EventKind::of(state), EventId::of_trade(self.id, state.status(), at));
        let body =
            event::body(id, kind, at, &told.told(state)).map_err(|error| StoreError::unwritable(&error))?;
        let (user_id, key_id, trade_id) = (self.user_id, Some(self.key_id), Some(self.id));
        Ok(NewEvent { id, user_id, kind, key_id, trade_id, body, at })
    }
}

/// The statuses that a trade went through, with their times, in order.
pub type History = Vec<(Status, Timestamp)>;

/// The statuses that a trade went through.
pub async fn history(tx: &mut Tx, trade_id: TradeId) -> Result<History, StoreError> {
    const SQL: &str = "SELECT status, at_ms FROM trace_events WHERE trade_id = $1 AND kind LIKE 'trade.%'
        ORDER BY seq LIMIT 100";
    let events = tx.list(SQL, &params![trade_id], |row| Ok((row.parse(0)?, row.timestamp(1)?))).await?;
    let mut history = History::with_capacity(events.len());
    for event in events {
        push_move(&mut history, event);
    }
    Ok(history)
}

/// Adds an event's status, unless it is the one that the trade had already.
pub(super) fn push_move(history: &mut History, event: (Status, Timestamp)) {
    if history.last().is_none_or(|last| last.0 != event.0) {
        history.push(event);
    }
}
