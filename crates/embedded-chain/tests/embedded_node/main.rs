//! Tests of the embedded chain through its JSON-RPC methods and its transport, with small
//! hand-assembled contracts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blocks;
mod calls;
mod crash;
mod history;
mod http;
mod logs;
mod provider;
mod restart;
mod sending;
mod support;
