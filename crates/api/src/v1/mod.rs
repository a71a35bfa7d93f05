//! The handlers of the trading API, one file per resource.

pub mod account_pause;
pub mod docs;
pub mod events;
pub mod health;
pub mod history;
mod instants;
pub mod key;
mod market_record;
pub mod markets;
pub mod openapi;
pub mod portfolio;
pub mod predictions;
pub mod quote;
pub mod readiness;
pub mod redemptions;
pub mod router;
pub mod sandbox_clock;
pub mod traces;
pub mod trades;
pub mod usage;
pub mod webhooks;

use presentation::numbers;
