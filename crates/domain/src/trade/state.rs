//! The states of a trade. Each variant contains exactly the data that exists in that state. A
//! [`Transition`] contains everything that must be stored together with a change of state.

use alloy_primitives::B256;

use crate::Timestamp;
use crate::code::ErrorCode;
use crate::money::{Usdc, Wad};
use crate::risk::RiskRefusal;
use crate::words::words;

words! {
    /// The name of a trade's state.
    Status, UnknownStatus {
        /// Held until the client confirms it.
        PendingConfirmation = "pending_confirmation",
        /// Accepted, but not processed yet.
        Pending = "pending",
        /// Being checked against the current state of the chain.
        Validating = "validating",
        /// Has its intent, and is or will be sent. From here on, only the chain decides the result,
        /// unless its batch is lost and its key has ended meanwhile.
        Executing = "executing",
        /// Mined, successful and final.
        Completed = "completed",
        /// Will not execute.
        Failed = "failed",
        /// Rejected by the risk engine before anything was sent to the chain.
        Rejected = "rejected",
    }
}

words! {
    /// The stage of a trade, from request to notification, to which a trace event belongs.
    TraceStage, UnknownStage {
        /// The request and its checks.
        Intent = "intent",
        /// Reserving and checking funds.
        Funding = "funding",
        /// Sending to the chain and executing there.
        Execution = "execution",
        /// Notifying the receiver.
        Webhook = "webhook",
    }
}

impl Status {
    /// Returns true if a trade may move from this status to `next`.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::PendingConfirmation, Self::Pending | Self::Failed)
                | (Self::Pending, Self::Validating | Self::Failed | Self::Rejected)
                | (Self::Validating, Self::Executing | Self::Failed | Self::Rejected)
                | (Self::Executing, Self::Completed | Self::Failed)
        )
    }

    /// Returns true if this status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected)
    }
}

/// The result of an executed trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The transaction that contained the trade.
    pub tx_hash: B256,
    /// The block of the transaction.
    pub block_number: u64,
    /// The amount that the buyer paid with the fee, or that the seller received after it.
    pub usdc: Usdc,
    pub tokens: Wad,
    /// Part of `usdc` for buys, deducted before it for sales.
    pub fee: Usdc,
}

/// The reason why a trade failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: ErrorCode,
    /// An explanation for people, without internal details.
    pub message: String,
    /// The transaction in which it failed, if it reached the chain.
    pub tx_hash: Option<B256>,
}

/// The message of a trade that failed because its key was revoked or has expired.
pub const KEY_ENDED: &str = "The key that created this trade was revoked or has expired.";

fn key_ended() -> Failure {
    Failure { code: ErrorCode::WalletDelegationNotEnabled, message: KEY_ENDED.to_owned(), tx_hash: None }
}

/// Returns true if the trade failed because its key was revoked or had expired, before anything was
/// sent.
pub fn is_end_of_key(failure: &Failure) -> bool {
    *failure == key_ended()
}

/// The reason why the risk engine rejected a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RiskRejection {
    pub reason: RiskRefusal,
}

/// A trade's state and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    PendingConfirmation {
        /// The end of the confirmation window.
        expires_at: Timestamp,
    },
    Pending,
    Validating,
    Executing,
    Completed(Settlement),
    Failed(Failure),
    Rejected(RiskRejection),
}

impl State {
    pub const fn status(&self) -> Status {
        match self {
            Self::PendingConfirmation { .. } => Status::PendingConfirmation,
            Self::Pending => Status::Pending,
            Self::Validating => Status::Validating,
            Self::Executing => Status::Executing,
            Self::Completed(_) => Status::Completed,
            Self::Failed(_) => Status::Failed,
            Self::Rejected(_) => Status::Rejected,
        }
    }
}

/// An event of a trade's trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    pub stage: TraceStage,
    /// The event's type, in dotted lower case.
    pub kind: &'static str,
    /// The trade's status after the event.
    pub status: Status,
    pub at: Timestamp,
    /// Details, all of which may be public.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a trade cannot move from {from} to {to}")]
pub struct IllegalMove {
    /// The trade's current status.
    pub from: Status,
    /// The requested status.
    pub to: Status,
}

/// A change of a trade's state with everything that is stored with it. The store applies it as a
/// compare-and-set on `from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The status that the trade must have.
    pub from: Status,
    pub to: State,
    /// The event for the trade's trace.
    pub trace: TraceEvent,
}

impl Transition {
    fn new(
        from: Status,
        to: State,
        stage: TraceStage,
        kind: &'static str,
        at: Timestamp,
    ) -> Result<Self, IllegalMove> {
        let status = to.status();
        // The only place that creates transitions, so no illegal one can be stored.
        if !from.may_become(status) {
            return Err(IllegalMove { from, to: status });
        }
        Ok(Self { from, to, trace: TraceEvent::new(stage, kind, status, at) })
    }

    /// Returns the first trace event of a trade created in `state`.
    pub fn created(state: &State, at: Timestamp) -> TraceEvent {
        let event = |kind| TraceEvent::new(TraceStage::Intent, kind, state.status(), at);
        match state {
            State::PendingConfirmation { expires_at } => {
                event("trade.held").with("expiresAt", expires_at.to_string())
            }
            _ => event("trade.accepted"),
        }
    }

    /// The client confirms a held trade.
    pub fn confirm(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        Self::new(from, State::Pending, TraceStage::Intent, "trade.confirmed", at)
    }

    /// The confirmation window ends without a confirmation.
    pub fn expire(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        let message = "The trade was not confirmed within the confirmation window.".to_owned();
        Self::fail(from, Failure { code: ErrorCode::ConfirmationExpired, message, tx_hash: None }, at)
    }

    /// The key that created a trade is revoked or expires before anything of the trade is signed.
    pub fn end_with_key(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        // Only these statuses can move to `Rejected`; a held trade fails instead.
        match from {
            Status::Pending | Status::Validating => Self::reject(from, RiskRefusal::DelegationInactive, at),
            _ => Self::fail(from, key_ended(), at),
        }
    }

    /// The executor starts to process the trade.
    pub fn validate(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        Self::new(from, State::Validating, TraceStage::Funding, "trade.validating", at)
    }

    /// The trade gets its intent.
    pub fn execute(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        Self::new(from, State::Executing, TraceStage::Execution, "trade.executing", at)
    }

    /// The trade's event on chain is final.
    pub fn complete(from: Status, settlement: Settlement, at: Timestamp) -> Result<Self, IllegalMove> {
        let Settlement { tx_hash, block_number, usdc, tokens, fee } = settlement.clone();
        let moved =
            Self::new(from, State::Completed(settlement), TraceStage::Execution, "trade.completed", at)?;
        Ok(moved
            .with("txHash", tx_hash.to_string())
            .with("blockNumber", block_number)
            .with("usdcAmount", usdc.to_string())
            .with("tokensOut", tokens.to_string())
            .with("fee", fee.to_string()))
    }

    /// The trade will not execute.
    pub fn fail(from: Status, failure: Failure, at: Timestamp) -> Result<Self, IllegalMove> {
        let (code, tx_hash) = (failure.code.as_str(), failure.tx_hash);
        // The failure belongs to the stage that the trade had reached.
        let stage = match from {
            Status::PendingConfirmation => TraceStage::Intent,
            Status::Executing => TraceStage::Execution,
            _ => TraceStage::Funding,
        };
        let failed =
            Self::new(from, State::Failed(failure), stage, "trade.failed", at)?.with("errorCode", code);
        Ok(match tx_hash {
            Some(hash) => failed.with("txHash", hash.to_string()),
            None => failed,
        })
    }

    /// The risk engine rejects the trade.
    pub fn reject(from: Status, reason: RiskRefusal, at: Timestamp) -> Result<Self, IllegalMove> {
        let rejected = State::Rejected(RiskRejection { reason });
        Ok(Self::new(from, rejected, TraceStage::Funding, "trade.rejected", at)?
            .with("errorCode", reason.as_str()))
    }

    fn with(self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        Self { trace: self.trace.with(name, value), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_documented_of_49_transitions_are_allowed() {
        let moves: Vec<_> = Status::ALL
            .iter()
            .flat_map(|from| Status::ALL.iter().map(move |to| (*from, *to)))
            .filter(|(from, to)| from.may_become(*to))
            .map(|(from, to)| format!("{from} -> {to}"))
            .collect();
        insta::assert_snapshot!(moves.join("\n"));
    }

    #[test]
    fn nothing_follows_a_terminal_status() {
        for from in Status::ALL.iter().filter(|status| status.is_terminal()) {
            assert!(Status::ALL.iter().all(|to| !from.may_become(*to)), "{from}");
        }
    }

    #[test]
    fn a_forbidden_transition_is_rejected() {
        let refused = Transition::execute(Status::Pending, Timestamp::from_ms(0));
        assert_eq!(refused, Err(IllegalMove { from: Status::Pending, to: Status::Executing }));
    }

    #[test]
    fn only_a_held_trade_is_confirmed_or_expires() {
        let at = Timestamp::from_ms(5);
        for from in Status::ALL.iter().copied() {
            assert_eq!(Transition::confirm(from, at).is_ok(), from == Status::PendingConfirmation, "{from}");
        }
        let expired = Transition::expire(Status::PendingConfirmation, at).unwrap();
        assert_eq!(expired.trace.attributes["errorCode"], "CONFIRMATION_EXPIRED");
        assert_eq!((expired.trace.stage, expired.to.status()), (TraceStage::Intent, Status::Failed));
    }

    #[test]
    fn the_trace_of_a_rejected_trade_has_the_reason() {
        let moved =
            Transition::reject(Status::Validating, RiskRefusal::PriceMoved, Timestamp::from_ms(5)).unwrap();
        assert_eq!(moved.trace.attributes["errorCode"], "price_moved");
        assert_eq!(moved.trace.status, Status::Rejected);
    }
}
