//! Conformance tests of the engines: units of work behave the same on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit_log;
mod candles;
mod conflicts;
mod fixture;
mod migrations;
mod outages;
mod partitions;
mod people;
mod pooler;
mod portable_sql;
mod postgres;
mod replica;
mod rows;
mod sized;
mod sized_lists;
mod sqlite;
mod streams;
mod tls;
mod units;
mod usage;
mod values;
