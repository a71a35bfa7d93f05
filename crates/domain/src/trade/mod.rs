//! Trades: the request, the states, their transitions and the trace.

mod confirmation;
mod hold;
mod request;
mod state;
mod trace;
mod warning;

pub use crate::field_error::FieldError;
pub use confirmation::{ConfirmRefusal, ConfirmationKey, check_confirmation};
pub use hold::{Budget, HoldReason, Room, UnknownHoldReason};
pub use request::{AmountType, Draft, RequestRefusal, Side, TradeRequest, is_client_request_id};
pub use state::{
    Failure, IllegalMove, KEY_ENDED, RiskRejection, Settlement, State, Status, TraceEvent, TraceStage,
    Transition,
};
pub use warning::TradeWarning;
