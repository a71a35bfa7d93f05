//! Access to the chain: an alloy `Provider` over the embedded chain or over JSON-RPC nodes, and a
//! client of the contracts on top of it. Code above this crate does not depend on which of the two
//! it uses.

mod bindings;
mod block;
pub mod client;
mod error;
pub mod nodes;
mod revert;

pub use block::Block;
pub use client::*;
pub use error::ChainError;
pub use nodes::{
    AskedBy, ChainIdentity, DeploymentVerifier, MAX_NODE_CONNECTIONS, NodeReport, NodeStatus, Nodes,
    RPC_METHODS, RpcObserver,
};
pub use revert::{ParseRevertError, Revert};
