//! The row of a trade.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256};
use domain::event::{self, EventKind, TradeData};
use domain::ids::{BatchId, CorrelationId, EventId, KeyId, MarketId, TradeId, UserId};
use domain::trade::{AmountType, Failure, HoldReason, RiskRejection, Settlement, Side, State, Status};
use domain::{Timestamp, Usdc, Wad};

use crate::engine::Columns;
use crate::new_event::NewEvent;
use crate::record::{Record, record};
use crate::{StoreError, TradeMove, Tx, params};

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Trade {
        pub id: TradeId,
        pub user_id: UserId,
        /// The API key that created the trade.
        pub key_id: KeyId,
        /// The user's smart account.
        pub account: Address,
        pub market_id: MarketId,
        pub outcome_index: u8,
        pub side: Side,
        /// The amount exactly as the client sent it.
        pub amount_text: String,
        /// The unit of the amount.
        pub amount_type: AmountType,
        /// The client's own key-value pairs.
        pub metadata: BTreeMap<String, String>,
        /// The client's `clientRequestId`.
        pub client_request_id: Option<String>,
        /// The request's fingerprint, in hex.
        pub request_hash: String,
        pub correlation_id: CorrelationId,
        /// The contracts' numeric code for the kind of trade.
        pub intent_side: u8,
        /// The intent's USDC. Its side decides whether this is exact or a bound.
        pub intent_usdc: Usdc = "intent_usdc_atomic",
        /// The intent's tokens. Its side decides whether this is exact or a bound.
        pub intent_tokens: Wad = "intent_tokens_wad",
        /// The tolerated difference from the price quoted at acceptance, in basis points. `None` if
        /// only the intent's own amounts bound the price.
        pub max_slippage_bps: Option<u16>,
        /// The time after which the intent no longer executes; enforced on chain.
        pub deadline: Timestamp = "deadline_ms",
        /// The index of the account's policy that the trade spends from.
        pub key_index: u32,
        /// The executor lane, derived from the account.
        pub lane: u16,
        /// The intent's nonce, set once the trade is executing.
        pub nonce: Option<u32>,
        /// The batch that contains the trade.
        pub batch_id: Option<BatchId>,
        /// The USDC that the trade is expected to move.
        pub volume: Usdc = "volume_usdc_atomic",
        /// The external condition that must be met before signing. `None` if the trade waits only for
        /// its turn.
        pub waiting_for: Option<HoldReason>,
        /// The part of the key's daily cap that the trade uses. Only buys use the cap; zero once the
        /// trade has failed.
        pub reserved: Usdc = "reserved_usdc_atomic",
        pub state: State = ..,
        /// The end of the confirmation window, if the trade was held. It remains set after the
        /// confirmation.
        pub held_until: Option<Timestamp> = "confirmation_expires_at_ms",
        pub created_at: Timestamp = "created_at_ms",
        /// The time of the last status change.
        pub updated_at: Timestamp = "updated_at_ms",
        pub ended_at: Option<Timestamp> = "ended_at_ms",
        /// The time at which the row was restored from the chain, if it had been lost.
        pub recovered_at: Option<Timestamp> = "recovered_at_ms",
        /// An agent created the trade: only the account's owner can confirm it, on its page.
        pub is_from_agent: bool,
    }
}

record! {
    /// The columns of a trade's state. Those that its status does not have are NULL.
    struct StoredState {
        status: Status,
        expires_at: Option<Timestamp> = "confirmation_expires_at_ms",
        tx_hash: Option<B256>,
        block_number: Option<u64>,
        tokens: Option<Wad> = "tokens_moved_wad",
        usdc: Option<Usdc> = "usdc_moved_atomic",
        fee: Option<Usdc> = "fee_atomic",
        error_code: Option<String>,
        error_message: Option<String>,
    }
}

impl Record for State {
    const COLUMNS: &'static str = StoredState::COLUMNS;

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let stored = StoredState::read(columns)?;
        let missing = |column| columns.corrupt(column, "NULL in a status that has it");
        let code = || stored.error_code.as_deref().ok_or_else(|| missing("error_code"));
        Ok(match stored.status {
            Status::PendingConfirmation => Self::PendingConfirmation {
                expires_at: stored.expires_at.ok_or_else(|| missing("confirmation_expires_at_ms"))?,
            },
            Status::Pending => Self::Pending,
            Status::Validating => Self::Validating,
            Status::Executing => Self::Executing,
            Status::Completed => Self::Completed(Settlement {
                tx_hash: stored.tx_hash.ok_or_else(|| missing("tx_hash"))?,
                block_number: stored.block_number.ok_or_else(|| missing("block_number"))?,
                tokens: stored.tokens.ok_or_else(|| missing("tokens_moved_wad"))?,
                usdc: stored.usdc.ok_or_else(|| missing("usdc_moved_atomic"))?,
                fee: stored.fee.ok_or_else(|| missing("fee_atomic"))?,
            }),
            Status::Failed => Self::Failed(Failure {
                code: code()?.parse().map_err(|_| columns.corrupt("error_code", "not a ErrorCode"))?,
                message: stored.error_message.ok_or_else(|| missing("error_message"))?,
                tx_hash: stored.tx_hash,
            }),
            Status::Rejected => Self::Rejected(RiskRejection {
                reason: code()?.parse().map_err(|_| columns.corrupt("error_code", "not a RiskRefusal"))?,
            }),
        })
    }
}

impl Trade {
    /// Returns the trade's change to `state` at `at`, as observers see it.
    pub(super) const fn moved_to(&self, state: &State, at: Timestamp) -> TradeMove {
        TradeMove {
            trade_id: self.id,
            to: state.status(),
            created_at: self.created_at,
            since: self.updated_at,
            at,
            correlation_id: self.correlation_id,
            error: match state {
                State::Failed(failure) => Some(failure.code.as_str()),
                State::Rejected(rejection) => Some(rejection.reason.as_str()),
                _ => None,
            },
            batch_id: self.batch_id,
            was_held: self.held_until.is_some(),
        }
    }

    /// Builds the event for the trade's change to `state` at `at`.
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
        // The id is derived, so a transaction that is retried writes the same event.
        let (kind, id) = (EventKind::of(state), EventId::of_trade(self.id, state.status(), at));
        let body =
            event::body(id, kind, at, &told.told(state)).map_err(|error| StoreError::unwritable(&error))?;
        let (user_id, key_id, trade_id) = (self.user_id, Some(self.key_id), Some(self.id));
        Ok(NewEvent { id, user_id, kind, key_id, trade_id, body, at })
    }
}

/// A trade's statuses and their times, in order.
pub type StatusHistory = Vec<(Status, Timestamp)>;

pub async fn history(tx: &mut Tx, trade_id: TradeId) -> Result<StatusHistory, StoreError> {
    const SQL: &str = "SELECT status, at_ms FROM trace_events WHERE trade_id = $1 AND kind LIKE 'trade.%'
        ORDER BY seq LIMIT 100";
    let events = tx.list(SQL, &params![trade_id], |row| Ok((row.get("status")?, row.get("at_ms")?))).await?;
    let mut history = StatusHistory::with_capacity(events.len());
    for event in events {
        push_move(&mut history, event);
    }
    Ok(history)
}

/// Appends an event's status, unless it equals the last one. Some events do not change the status.
pub(super) fn push_move(history: &mut StatusHistory, event: (Status, Timestamp)) {
    if history.last().is_none_or(|last| last.0 != event.0) {
        history.push(event);
    }
}
