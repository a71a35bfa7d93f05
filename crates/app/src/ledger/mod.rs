//! The ledger: writes what the chain says into the tables, and repairs tables that differ from it.
//!
//! `sync` reads blocks and `apply` turns their events into rows. `settle_trades` and
//! `settle_redemptions` end trades and claims from final events. `reconcile` compares the rows with
//! the chain and repairs them.

pub mod aggregates;
mod apply;
mod candles;
mod on_chain;
mod reading;
mod rebuild;
mod reconcile;
mod repair_markets;
mod repair_trades;
mod reread;
mod settle_redemptions;
mod settle_trades;
mod sync;

pub use rebuild::rebuild;
pub(crate) use reconcile::compare_with_chain;
pub use reconcile::{LEASE as UPKEEP_LEASE, Reconciler, quarantine_drifted, reconcile_all};
pub use repair_markets::{Repaired, repair_market};
pub use repair_trades::{TradeRepair, repair_trade};
pub use reread::{AcceptReorganization, Reread, reread, reread_block};
pub use sync::{LEASE as SYNC_LEASE, Sync};
