//! Foretell's use cases and background workers, by feature.
//!
//! Every change goes through a function in this crate. Reads without rules go directly from the
//! handlers to the store.

pub mod access;
pub mod accounts;
pub mod admin;
pub mod audit_log;
pub mod caller;
pub mod catalog;
pub mod cleanup;
pub mod config;
pub mod ctx;
pub mod delegations;
pub mod encryption;
pub mod entropy;
pub mod error;
pub mod event_sink;
pub mod faucet;
pub mod feed;
pub mod finality;
pub mod for_you;
pub mod health;
pub mod import;
pub mod keys;
pub mod kill_switches;
pub mod lanes;
pub mod leaderboard;
pub mod lease;
pub mod ledger;
pub mod limits;
mod lost_data;
pub mod markets;
pub mod metrics;
mod minimum;
pub mod nodes;
mod observers;
pub mod owner_acts;
pub mod parsing;
pub mod passkeys;
pub mod people;
pub mod portfolio;
pub mod process;
pub mod readiness;
pub mod recovery;
pub mod redemptions;
pub mod request_log;
pub mod roles;
pub mod sample_users;
pub mod scrape;
pub mod sessions;
pub mod test_clock;
pub mod traces;
pub mod trades;
pub mod trading_stop;
pub mod usage;
pub mod user_log;
pub mod webhooks;
pub mod worker;

pub use config::Config;
pub use ctx::Ctx;
pub use error::{AccountChoice, AppError, InvalidState, PersonError, Submission};
