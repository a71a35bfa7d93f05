//! The contracts' client: quotes, state, events, delegated trades and the life of markets and accounts, over
//! any alloy `Provider`.
//!
//! Signing is separate from sending, and no filler chooses a nonce: the caller stores the signed bytes before
//! they leave the process, so that a crash can only lead to the same bytes being sent again. `transact` is
//! the short path without that care, for operators.
//!
//! Units stand in the names: `_usdc_atomic` is millionths of a USDC, `_wad` is 1e-18 of a token, `_s` is Unix
//! seconds.

mod assertion;
mod batch;
mod bindings;
mod blocks;
pub mod calls;
mod chain;
pub mod deploy;
mod deployed;
mod error;
mod event;
mod intent;
pub mod lmsr;
mod owner;
pub mod provision;
mod reads;
mod revert;
mod signer;
mod socket;
mod state;
mod transactions;

pub use assertion::Assertion;
pub use batch::{Call, batch_digest};
pub use blocks::{BlockEvents, Blocks};
pub use calls::MarketTerms;
pub use chain::{Block, Chain, Contracts, http_provider};
pub use deploy::DeploySettings;
pub use error::ChainError;
pub use event::{Event, EventKind};
pub use intent::{Intent, Side, execute_calldata};
pub use owner::{Owner, ParseOwnerError};
pub use provision::{Batch, KeyPolicy};
pub use revert::{ParseRevertError, Revert};
pub use signer::Signer;
pub use socket::{is_socket_url, provider, socket_url};
pub use state::{
    AccountState, Fill, HourlyVolume, MarketOnChain, MarketStatus, OutcomeOnChain, Policy, Position,
    Resolution, token_id,
};
pub use transactions::{Fees, Receipt, SendOutcome, SignedTx, Transaction};
