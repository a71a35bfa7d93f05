//! The embedded chain, through its JSON-RPC and its transport, with small contracts assembled by hand.

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
