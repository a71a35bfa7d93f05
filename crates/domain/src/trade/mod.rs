//! A trade: what was asked for, and the states that it goes through.

mod request;
mod state;

pub use request::{AmountType, Draft, FieldError, RequestRefusal, Side, TradeRequest, is_client_request_id};
pub use state::{
    Failure, IllegalMove, Refusal, Settlement, State, Status, TraceEvent, TraceStage, Transition,
};
