//! The chain: one alloy `Provider`, over the embedded chain in process or over HTTP to a JSON-RPC node, and the
//! client of the contracts on top of it. Nothing above this crate knows which of the two it talks to.

pub mod client;
pub mod embedded;
pub mod nodes;

pub use client::*;
pub use embedded::{EmbeddedNode, Genesis};
pub use nodes::{ChainIdentity, NodeReport, Nodes, Standing};
