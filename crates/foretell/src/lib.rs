//! The `foretell` binary: command line, configuration, secrets, and the wiring that assembles and
//! runs the service.

mod actor;
pub mod backup;
pub mod cli;
pub mod config;
mod data_folder;
mod database;
mod deployment;
pub mod dev;
pub mod entropy;
mod lanes;
pub mod logging;
mod migrate;
mod nats;
pub mod ops;
mod optional_listen;
mod panics;
pub mod private_hosts;
pub mod process_roles;
pub mod reload;
pub mod rpc;
pub mod run;
pub mod secrets;
pub mod service_file;
mod start_checks;
pub mod start_error;
mod storage_files;
pub mod traces;
mod workers;
