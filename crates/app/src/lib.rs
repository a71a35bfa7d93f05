//! Foretell's use cases and workers, by feature. What changes goes through one function here; what is only read and has
//! no rule is read from the store where it is answered.

pub mod accounts;
pub mod aggregates;
pub mod audit_log;
pub mod catalog;
mod chain_errors;
pub mod cleanup;
pub mod ctx;
pub mod delegations;
pub mod entropy;
pub mod error;
pub mod feed;
pub mod finality;
pub mod fresh;
pub mod health;
pub mod import;
pub mod keys;
pub mod kill_switches;
pub mod leaderboard;
pub mod lease;
pub mod limits;
pub mod markets;
mod minimum;
pub mod nodes;
pub mod portfolio;
pub mod readiness;
pub mod recovery;
pub mod redemptions;
pub mod sealed;
pub mod trades;
pub mod usage;
pub mod user_units;
pub mod webhooks;
pub mod worker;

pub use ctx::{Config, Ctx};
pub use error::{AppError, Submission};
