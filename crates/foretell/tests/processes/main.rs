//! Tests of the real binary as processes: killed at random times, two of them on one database and
//! one chain, and with clients that disconnect during a request. The results are checked against
//! sources outside the service: the responses to clients, and the chain's events.
//!
//! `FORETELL_CRASH_KILLS` sets the number of kills of the crash tests (default 30).
//! `FORETELL_CRASH_SEED` repeats a run. `FORETELL_ROLLING_RESTARTS` sets the number of rolling
//! restarts (default 3). `FORETELL_FAILOVERS` sets the number of failovers of PostgreSQL (default 0,
//! because each waits for Patroni's 20 seconds and needs Patroni and etcd). `FORETELL_RELEASE_BEFORE` names the binary of
//! the last release, for the test of an upgrade.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod account_owners;
mod anvil;
mod backup;
mod clients;
mod cluster;
mod collector;
mod crash;
mod deployment;
mod dice;
mod divided;
mod door;
mod event_sink;
mod failover;
mod feed;
mod frozen;
mod hangup;
mod imports;
mod kms;
mod market_ends;
mod nats_server;
mod nodes;
mod operator;
mod oracle;
mod outage;
mod published_site;
mod receiver;
mod replica;
mod roles;
mod rolling;
mod sandbox;
mod service;
mod slow;
mod slow_node;
mod start_checks;
mod stop;
mod storage;
mod storm;
mod traces;
mod traders;
mod upgrade;
mod webhook_neighbours;
mod webhook_order;
mod webhooks;
