//! Detects that the database was set back, and opens a recovery.
//!
//! This is the part of [`crate::recovery`] that the sync and the executors use. It is separate
//! because a recovery itself uses the ledger.

mod decision;
mod detect;

pub use decision::{Decision, Decisions, LostTradeResult, decisions_in, unknown};
pub use detect::{
    Detection, LostData, default_from, detect, evidence, is_open, open, open_for_nonce, open_for_operator,
};
