//! The states of a trade. Variants carry exactly the data that exists there, and a [`Transition`] carries everything
//! that has to be stored together with a move, so that none of it can be forgotten.

use alloy_primitives::B256;

use crate::Timestamp;
use crate::code::ErrorCode;
use crate::money::{Usdc, Wad};
use crate::risk::RiskRefusal;
use crate::words::words;

words! {
    /// The name of a trade's state.
    Status, UnknownStatus {
        /// Held until the caller confirms it.
        PendingConfirmation = "pending_confirmation",
        /// Accepted; nothing done yet.
        Pending = "pending",
        /// Being checked against the chain as it is now.
        Validating = "validating",
        /// Has its intent; sent or about to be sent. The chain decides from here on.
        Executing = "executing",
        /// Mined with success and final.
        Completed = "completed",
        /// Did not happen, and will not.
        Failed = "failed",
        /// Refused by the risk engine before anything reached the chain.
        Rejected = "rejected",
    }
}

words! {
    /// The part of the path from request to notification that a trace event belongs to.
    TraceStage, UnknownStage {
        /// The request and what was checked of it.
        Intent = "intent",
        /// The money set aside and checked.
        Funding = "funding",
        /// On the way to and on the chain.
        Execution = "execution",
        /// Told to the receiver.
        Webhook = "webhook",
    }
}

impl Status {
    /// Whether a trade may move from this status to `next`.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::PendingConfirmation, Self::Pending | Self::Failed)
                | (Self::Pending, Self::Validating | Self::Failed | Self::Rejected)
                | (Self::Validating, Self::Executing | Self::Failed | Self::Rejected)
                | (Self::Executing, Self::Completed | Self::Failed)
        )
    }

    /// Whether nothing follows this status.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected)
    }
}

/// What the chain did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The transaction that carried the trade.
    pub tx_hash: B256,
    /// The block it was mined in.
    pub block_number: u64,
    /// USDC moved, fee included.
    pub usdc: Usdc,
    /// Outcome tokens moved.
    pub tokens: Wad,
    /// Fee within `usdc` (buys) or beside it (sales).
    pub fee: Usdc,
}

/// Why a trade failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A code of the catalogue.
    pub code: ErrorCode,
    /// A sanitised reason for people.
    pub message: String,
    /// The transaction that refused it, where it reached the chain.
    pub tx_hash: Option<B256>,
}

/// What a trade says that failed because its key was revoked or has expired.
pub const KEY_ENDED: &str = "The key that made this trade was revoked or has expired.";

fn key_ended() -> Failure {
    Failure { code: ErrorCode::WalletDelegationNotEnabled, message: KEY_ENDED.to_owned(), tx_hash: None }
}

/// Whether a trade failed because its key was revoked or has expired, before anything was sent.
pub fn is_end_of_key(failure: &Failure) -> bool {
    *failure == key_ended()
}

/// Why the risk engine refused a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: RiskRefusal,
}

/// Where a trade stands, with what is known there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Held for confirmation until `expires_at`.
    PendingConfirmation {
        /// The end of the confirmation window.
        expires_at: Timestamp,
    },
    /// Accepted.
    Pending,
    /// Being checked.
    Validating,
    /// With the chain.
    Executing,
    /// Done.
    Completed(Settlement),
    /// Did not happen.
    Failed(Failure),
    /// Refused before the chain.
    Rejected(Refusal),
}

impl State {
    /// The state's name.
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

/// One event of a trade's trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// Where on the path it happened.
    pub stage: TraceStage,
    /// What happened, in dotted lower case.
    pub kind: &'static str,
    /// The status that the trade has from here on.
    pub status: Status,
    /// When.
    pub at: Timestamp,
    /// What is worth knowing of it, already public.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

/// The move is not one that a trade makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a trade does not move from {from} to {to}")]
pub struct IllegalMove {
    /// Where the trade stands.
    pub from: Status,
    /// Where it was to go.
    pub to: Status,
}

/// One move of a trade and all that is stored with it. The store makes it a compare-and-set on `from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The status that the trade must have.
    pub from: Status,
    /// The state that it gets.
    pub to: State,
    /// The trace's event.
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
        if !from.may_become(status) {
            return Err(IllegalMove { from, to: status });
        }
        Ok(Self { from, to, trace: TraceEvent::new(stage, kind, status, at) })
    }

    /// The first event of a trade created in `state`.
    pub fn created(state: &State, at: Timestamp) -> TraceEvent {
        let event = |kind| TraceEvent::new(TraceStage::Intent, kind, state.status(), at);
        match state {
            State::PendingConfirmation { expires_at } => {
                event("trade.held").with("expiresAt", expires_at.to_string())
            }
            _ => event("trade.accepted"),
        }
    }

    /// The caller has confirmed a held trade.
    pub fn confirm(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        Self::new(from, State::Pending, TraceStage::Intent, "trade.confirmed", at)
    }

    /// The confirmation window is over and nobody has confirmed.
    pub fn expire(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        let message = "The confirmation window passed and the trade was not confirmed.".to_owned();
        Self::fail(from, Failure { code: ErrorCode::ConfirmationExpired, message, tx_hash: None }, at)
    }

    /// The key that made a trade was revoked or has expired before anything of the trade was signed.
    pub fn end_with_key(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        match from {
            Status::Pending | Status::Validating => Self::reject(from, RiskRefusal::DelegationInactive, at),
            _ => Self::fail(from, key_ended(), at),
        }
    }

    /// The executor has taken the trade up.
    pub fn validate(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        Self::new(from, State::Validating, TraceStage::Funding, "trade.validating", at)
    }

    /// The trade has its intent: from here on the chain decides.
    pub fn execute(from: Status, at: Timestamp) -> Result<Self, IllegalMove> {
        Self::new(from, State::Executing, TraceStage::Execution, "trade.executing", at)
    }

    /// The chain has made the trade, for good.
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

    /// The trade will not happen.
    pub fn fail(from: Status, failure: Failure, at: Timestamp) -> Result<Self, IllegalMove> {
        let (code, tx_hash) = (failure.code.as_str(), failure.tx_hash);
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

    /// The risk engine refuses the trade.
    pub fn reject(from: Status, reason: RiskRefusal, at: Timestamp) -> Result<Self, IllegalMove> {
        let rejected = State::Rejected(Refusal { reason });
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
    fn of_all_49_moves_exactly_the_documented_ones_are_allowed() {
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
    fn a_move_that_is_not_allowed_is_refused() {
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
    fn a_rejected_trade_says_why_in_its_trace() {
        let moved =
            Transition::reject(Status::Validating, RiskRefusal::PriceMoved, Timestamp::from_ms(5)).unwrap();
        assert_eq!(moved.trace.attributes["errorCode"], "price_moved");
        assert_eq!(moved.trace.status, Status::Rejected);
    }
}
