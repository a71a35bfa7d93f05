//! Access to the chain: an alloy `Provider` over the embedded chain or over JSON-RPC nodes, and a
//! client of the contracts on top of it. Code above this crate does not depend on which of the two
//! it uses.

pub mod client;
pub mod nodes;

pub use client::*;
pub use nodes::{ChainIdentity, NodeReport, Nodes, Standing};
