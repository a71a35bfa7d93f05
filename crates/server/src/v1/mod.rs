//! The routes of the trading API, a file for each resource.

pub mod account_pause;
pub mod docs;
pub mod health;
pub mod history;
pub mod key;
mod market_record;
pub mod markets;
pub mod portfolio;
pub mod predictions;
pub mod quote;
pub mod readiness;
pub mod redemptions;
pub mod traces;
mod trade_record;
pub mod trades_confirm;
pub mod trades_create;
pub mod trades_read;
pub mod usage;

use crate::numbers;
