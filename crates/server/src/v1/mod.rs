//! The routes of the trading API, a file for each resource.

pub mod account_pause;
pub mod docs;
pub mod events;
pub mod health;
pub mod history;
mod instants;
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
pub mod webhook_endpoint;
pub mod webhook_events;
pub mod webhook_secret;
pub mod webhook_sends;

use crate::numbers;
