//! Trades: accepts requests and carries them to the chain.
//!
//! `create` accepts a request, and the executor signs and sends batches. The
//! [ledger](crate::ledger) ends trades from the contracts' final events.

mod confirm;
mod create;
mod desk;
mod executor;
mod expiry;
mod funds;
mod intents;
mod plan;
mod replay;
mod risk;
mod sandbox;
mod share;
mod turns;

pub(crate) use confirm::confirm_as_owner;
pub use confirm::{Confirmation, confirm, confirmation_of, held_until, warnings_of};
pub use create::{Accepted, DryRun, IDEMPOTENCY_ROUTE, NewTrade, create};
pub use executor::Executor;
pub(crate) use executor::batch_gas;
pub use expiry::Expiry;
pub(crate) use funds::Funds;
pub use plan::TradePlan;
pub use sandbox::SandboxCheck;
pub use turns::in_turns;
