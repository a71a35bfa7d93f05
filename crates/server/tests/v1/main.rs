//! The trading API as its clients see it: the service's own router over SQLite and the embedded chain, with a clock that
//! stands still and workers that are stepped by hand.
//!
//! A file for each route, named after it and its method; what holds for all routes, and the stories that walk through
//! several of them, have files of their own. Happy paths are snapshots of status, headers and body, in which ids are
//! told by the order in which they appear.
#![expect(clippy::unwrap_used, reason = "what a test cannot do without fails it")]

mod authentication;
mod deadlines;
mod documents;
mod health_get;
mod market_get;
mod markets_get;
mod order_of_checks;
mod pagination;
mod portfolio_get;
mod positions_get;
mod predictions_get;
mod problems;
mod quote_get;
mod ready_get;
mod scene;
mod stories;
mod trade_get;
mod trades_get;
mod trades_post;
