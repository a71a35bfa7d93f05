//! Recovery from lost data: the database was set back, by a restore or a lossy failover, but the
//! chain was not.
//!
//! The chain then has trades that the tables lack. Continuing to sign would reuse their nonces, and
//! would execute trades again that the older copy still shows as waiting. So evidence of a loss
//! opens a recovery, and while one is open no lane signs anything. It is opened by:
//! - the sync, if a block contains a trade of one of our accounts that is unknown or was never
//!   signed;
//! - a lane that takes over and finds the same in blocks that were not read yet;
//! - a lane that signs, if the Gate has seen a nonce of the key that was never assigned.
//!
//! The [`Recoverer`] waits until nothing signed earlier can still be mined, and everything mined is
//! settled. Then it starts a new generation of the event feed, raises nonces above those used on
//! chain, and updates every trade that the chain decided. Each step can be repeated: after a crash
//! the recovery is still open, and the next tick continues.

mod driver;
mod lost;
mod plan;
mod run;
mod worker;

pub use crate::lost_data::{Decision, is_open, open, open_for_operator};
pub use driver::{BlockReader, RecoveryDriver, RecoveryStep, RecoveryWait};
pub use plan::{LostTrade, RaisedNonce, RecoveryPlan, plan};
pub use run::{Advance, advance};
pub use worker::Recoverer;
