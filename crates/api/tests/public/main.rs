//! Tests of the public read API: the service's own router with SQLite and the embedded chain. The
//! clock only advances explicitly, and the workers run step by step. Every response is validated
//! against the OpenAPI document.
#![expect(clippy::unwrap_used, reason = "what a test cannot do without fails it")]

mod canary;
mod community;
mod conditional_requests;
mod cors;
mod documents;
mod errors;
mod guide;
mod history;
mod lists;
mod markets;
mod oembed;
mod organizations;
mod parameters;
mod quote;
mod rate_limits;
mod session;
mod social;
mod stream;
mod threads;
