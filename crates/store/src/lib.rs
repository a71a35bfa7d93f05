//! Foretell's storage: all SQL, the migrations, and the only knowledge of the two database engines.
//!
//! One SQL text runs on SQLite and on PostgreSQL. [`Store`] is the seam: [`Store::write`] runs a unit of work, a
//! closure over a [`Tx`], whole or not at all; [`Store::read`] runs single statements on a reader. The rules that
//! keep the text common are few:
//!
//! - placeholders are `$1..$n`, numbered in order of first appearance, because SQLite numbers them so;
//! - columns are `BIGINT`, `TEXT` and, written `BYTES` in migrations, bytes; a `SUM` is `CAST(SUM(..) AS BIGINT)`;
//! - a parameter that is itself asked for NULL names its type: `CAST($1 AS TEXT) IS NULL OR status = $1`;
//! - unique rules are named indexes (`CREATE UNIQUE INDEX name`), so that a conflict has one name on both engines.

pub mod audit;
pub mod audit_log;
pub mod batches;
mod bind;
pub mod candles;
pub mod catalog;
pub mod delegations;
mod engine;
mod error;
pub mod events;
pub mod imports;
pub mod keys;
pub mod kill_switches;
pub mod leases;
pub mod listed;
pub mod market_statuses;
pub mod markets;
mod migrate;
mod migrations;
pub mod movements;
pub mod public;
pub mod quarantine;
pub mod recoveries;
pub mod redemptions;
pub mod sealed;
pub mod search;
#[cfg(feature = "test-support")]
pub mod sized;
pub mod sync;
pub mod traders;
pub mod trades;
pub mod usage;
pub mod users;
pub mod webhooks;

pub use engine::backup;
#[cfg(feature = "test-support")]
pub use engine::testing;
pub use engine::{Engine, Row, Store, Tx, Value, placeholders_in_order};
pub use error::StoreError;
pub use futures::future::BoxFuture;
pub use migrate::Schema;
