//! The service's face: the HTTP surface, the command line, and what assembles and runs the parts.

mod actor;
pub mod backup;
pub mod cli;
pub mod config;
mod data_folder;
mod deployment;
pub mod dev;
pub mod docs_pages;
pub mod entropy;
pub mod http;
pub mod markdown;
mod migrate;
mod numbers;
pub mod openapi;
mod panics;
pub mod public;
mod reference;
pub mod router;
pub mod rpc;
pub mod run;
pub mod secrets;
pub mod service_file;
pub mod v1;
mod workers;
