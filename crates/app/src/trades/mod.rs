//! The life of a trade: accepted here, carried to the chain by the executor, settled by the sync from the chain's events.

mod bounds;
mod confirm;
mod create;
mod executor;
mod expiry;
mod funds;
mod intents;
mod repair;
mod replay;
mod risk;
mod settle;
mod turns;

pub use bounds::Plan;
pub use confirm::{Confirmation, confirm, confirmation_of};
pub use create::{Accepted, DryRun, IDEMPOTENCY_ROUTE, NewTrade, create};
pub use executor::Executor;
pub(crate) use executor::batch_gas;
pub use expiry::Expiry;
pub(crate) use funds::Funds;
pub(crate) use intents::lane_of;
pub(crate) use repair::repair_stuck;
pub use repair::{TradeRepair, repair};
pub(crate) use settle::{DUPLICATE, settle, settle_market};
pub use turns::Turns;
