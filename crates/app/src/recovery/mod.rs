//! Recovering from lost data: the database was set back, by a restore or a lossy failover, and the chain was not.
//!
//! The chain then knows trades that the tables lack. Signing on would use nonces again that these trades have used, and
//! execute trades again that an older copy still shows as waiting. So what shows the loss opens a recovery, and while one is
//! open no lane signs anything:
//! - the sync, if a block names a trade of one of our accounts that is unknown or was never signed;
//! - a lane that takes over, which looks for the same in the blocks that were not read yet;
//! - a lane that signs, if the Gate has seen a nonce of the key that was never given out.
//!
//! The [`Recoverer`] waits until nothing that was signed before can still be mined and what was mined is settled. Then it
//! begins a new generation of the event feed, raises nonces above those that the chain has seen, and brings every trade that
//! the chain decided in line with the chain. Each step can be repeated: a crash leaves the recovery open, and the next tick
//! does again what is left.

mod decision;
mod detect;
mod lost;
mod plan;
mod run;
mod worker;

pub use decision::Decision;
pub(crate) use decision::decisions_in;
pub use detect::{Detection, LostData, detect, evidence, is_open, open, open_for_nonce, open_for_operator};
pub use plan::{LostTrade, Plan, RaisedNonce, plan};
pub use run::{Advance, advance};
pub use worker::Recoverer;
