//! Tests of the trading API: the service's own router with SQLite and the embedded chain. The clock
//! only advances explicitly, and the workers run step by step.
//!
//! Each route has a file named after it and its method. Rules for all routes, and stories over
//! several routes, have their own files. Successful requests are snapshots of status, headers and
//! body, in which ids are numbered in the order of their appearance.
#![expect(clippy::unwrap_used, reason = "what a test cannot do without fails it")]

mod account_pause_post;
mod architecture;
mod authentication;
mod catalogue;
mod compression;
mod conditional_requests;
mod deadlines;
mod documents;
mod envelopes;
mod events_get;
mod events_stream;
mod guide;
mod health_get;
mod history_get;
mod key_get;
mod kill_switches;
mod market_get;
mod markets_get;
mod mcp;
mod modules;
mod order_of_checks;
mod ownership;
mod pagination;
mod portfolio_get;
mod positions_get;
mod predictions_get;
mod problems;
mod quote_get;
mod rate_limits;
mod readiness_get;
mod ready_get;
mod redemptions;
mod requirements;
mod sandbox;
mod scene;
mod signatures;
mod statements;
mod stories;
mod submissions;
mod traces_get;
mod trade_confirm_post;
mod trade_get;
mod trades_batch_post;
mod trades_get;
mod trades_post;
mod usage_get;
mod versions;
mod webhook_statuses;
mod webhooks;
