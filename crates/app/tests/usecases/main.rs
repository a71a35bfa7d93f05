//! The use cases and the workers, told as stories: a whole service without HTTP, over the embedded chain.
//!
//! What depends on SQL or on concurrency runs on SQLite and, where `FORETELL_TEST_POSTGRES_URL` names a cluster, on
//! PostgreSQL; limits run in memory and, where `FORETELL_TEST_REDIS_URL` names one, on Redis; what only anvil can do runs where `FORETELL_ANVIL` names its binary.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot do without fails it")]

mod aggregates;
mod anvil;
mod audit_log;
mod bad_catalogues;
mod caps;
mod catalogue_races;
mod cleanup;
mod crashes;
mod dry_run;
mod executor;
mod fairness;
mod feed;
mod gate;
mod gate_races;
mod history;
mod holds;
mod hostile_events;
mod idempotency;
mod imports;
mod key_audit;
mod keys;
mod kill_switches;
mod leases;
mod limits;
mod lying_node;
mod minimums;
mod nodes;
mod nonces;
mod outages;
mod owner_batches;
mod pause;
mod portfolio;
mod recovery;
mod redemption_crashes;
mod redemptions;
mod refunded;
mod refusals;
mod reorgs;
mod restore_drill;
mod revocation;
mod rewrap;
mod scene;
mod slippage;
mod supervision;
mod sync;
mod traces;
mod trading;
mod usage;
mod webhooks;
mod webhooks_faults;
mod webhooks_kept;
