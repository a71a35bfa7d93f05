//! Storage: all SQL, the migrations, and the only code that knows the two database engines.
//!
//! The same SQL text runs on SQLite and on PostgreSQL. [`Store::write`] runs a unit of work (a
//! closure over a [`Tx`]) as one transaction. [`Store::read`] runs single statements on a reader.
//! Common SQL follows these rules:
//!
//! - Placeholders are `$1..$n`, numbered in order of first appearance, because SQLite numbers them
//!   that way.
//! - Rows are read by the names of their columns, so a computed column gets one: `COUNT(*) AS count`.
//!   A row with many columns is declared once, by `record!`.
//! - Columns are `BIGINT`, `TEXT` or bytes (written `BYTES` in migrations). A sum is written
//!   `CAST(SUM(..) AS BIGINT)`.
//! - A parameter that is compared with NULL names its type: `CAST($1 AS TEXT) IS NULL OR status =
//!   $1`.
//! - Unique constraints are named indexes (`CREATE UNIQUE INDEX name`), so that a conflict has the
//!   same name on both engines.

mod act;
pub mod admin_acts;
pub mod audit;
pub mod audit_log;
pub mod batches;
mod bind;
pub mod candles;
pub mod cash_flows;
pub mod catalog;
pub mod challenges;
pub mod credentials;
pub mod delegations;
mod engine;
mod error;
pub mod events;
pub mod gas_topups;
mod handle;
pub mod imports;
pub mod keys;
pub mod kill_switches;
pub mod lanes;
pub mod leases;
pub mod listed;
pub mod market_statuses;
pub mod markets;
mod migrate;
mod migrations;
pub mod movements;
mod new_event;
mod observer;
pub mod operations;
pub mod owner_acts;
pub mod public;
pub mod public_names;
pub mod publication;
pub mod quarantine;
mod record;
pub mod recoveries;
pub mod redemptions;
pub mod requests;
pub mod sealed;
pub mod search;
pub mod sessions;
pub mod sink_positions;
#[cfg(feature = "test-support")]
pub mod sized;
pub mod sync;
#[cfg(feature = "test-support")]
pub mod testing;
pub mod traders;
pub mod trades;
pub mod usage;
pub mod user_log;
pub mod users;
pub mod webhooks;
pub mod write_probes;

pub use engine::backup;
pub use engine::{
    Cell, Engine, FromColumn, PoolStatus, REPLICA_POOL, RemoteTls, Row, SqlValue, SslMode, Tx,
    placeholders_in_order, transport,
};
pub use error::StoreError;
pub use futures::future::BoxFuture;
pub use handle::Store;
pub use migrate::Schema;
pub use observer::module_of;
pub use observer::{RetryReason, StoreObserver, TradeMove};
