//! The real binary as processes: killed at random instants, two of them on one database and one chain, and left by clients
//! in the middle of a request. The oracles are outside the service: what clients were told, and the chain's own events.
//!
//! `FORETELL_CRASH_KILLS` says how often the crash tests kill (100 where it is unset), `FORETELL_CRASH_SEED` repeats a run.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod anvil;
mod backup;
mod clients;
mod cluster;
mod crash;
mod dice;
mod door;
mod feed;
mod frozen;
mod hangup;
mod imports;
mod market_ends;
mod nodes;
mod operator;
mod oracle;
mod receiver;
mod service;
mod slow;
mod slow_node;
mod stop;
mod storm;
mod webhook_neighbours;
mod webhook_order;
mod webhooks;
