//! Clients of remote signers.

mod web3signer;

pub use web3signer::Web3signer;
