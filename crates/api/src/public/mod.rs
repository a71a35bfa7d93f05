//! The public read API: threads, markets, organizations and partners, without authentication.
//!
//! This module does not use the trading API's routes. Thread times are seconds, market times
//! milliseconds, and `*At` members ISO 8601. Prices are numbers for display, and volumes are whole
//! cents. Unknown values are left out and never null.

mod analytics;
mod answer;
mod docs;
mod history;
mod leaderboard;
mod lists;
mod market_record;
mod markets;
mod oembed;
pub mod openapi;
mod organizations;
mod partners;
mod quote;
mod router;
mod social;
mod stream;
mod thread_record;
mod threads;
mod transactions;

pub use router::{router, routes};
