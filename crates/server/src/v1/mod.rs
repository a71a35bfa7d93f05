//! The routes of the trading API, a file for each resource.

pub mod docs;
pub mod health;
mod market_record;
pub mod markets;
mod numbers;
pub mod portfolio;
pub mod predictions;
pub mod quote;
mod trade_record;
pub mod trades_create;
pub mod trades_read;
