//! Tests of the use cases and workers: a whole service without HTTP, on the embedded chain.
//!
//! Tests that depend on SQL or concurrency run on SQLite and, if `FORETELL_TEST_POSTGRES_URL` names
//! a cluster, on PostgreSQL. Rate limits run in memory and, if `FORETELL_TEST_REDIS_URL` is set, in
//! Redis. Tests that need anvil run if `FORETELL_ANVIL` names its binary.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot do without fails it")]

mod access;
mod agents;
mod aggregates;
mod anvil;
mod audit_log;
mod bad_catalogs;
mod caps;
mod catalog_races;
mod cleanup;
mod confirmation_races;
mod confirmations;
mod crashes;
mod desk;
mod dry_run;
mod event_sink;
mod executor;
mod fairness;
mod feed;
mod for_you;
mod gas_treasury;
mod history;
mod holds;
mod hostile_events;
mod idempotency;
mod imports;
mod key_audit;
mod keys;
mod kill_switches;
mod lanes;
mod leases;
mod limits;
mod limits_tls;
mod lying_node;
mod minimums;
mod nodes;
mod nonces;
mod outages;
mod over_time;
mod owner_act_crashes;
mod owner_act_signatures;
mod owner_acts;
mod pause;
mod people;
mod portfolio;
mod recovery;
mod redemption_crashes;
mod redemptions;
mod refunds;
mod refusals;
mod remote_signers;
mod reorgs;
mod request_log;
mod restore_drill;
mod revocation;
mod rewrap;
mod roles;
mod sandbox;
mod scene;
mod sessions;
mod slippage;
mod spans;
mod supervision;
mod sync;
mod traces;
mod trading;
mod usage;
mod wallets;
mod web_keys;
mod webhooks;
mod webhooks_faults;
mod webhooks_retention;
