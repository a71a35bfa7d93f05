//! A client of the contracts over any alloy `Provider`: quotes, state, events, delegated trades,
//! and the lifecycle of markets and accounts.
//!
//! Signing is separate from sending, and no filler chooses a nonce. The caller stores the signed
//! bytes before it sends them, so that a restart after a crash sends the same bytes again.
//! `transact` is a shortcut without that guarantee, for operators.
//!
//! Names carry their units: `_usdc_atomic` is millionths of a USDC, `_wad` is 1e-18 of a token,
//! `_s` is Unix seconds.

mod assertion;
mod batch;
mod blocks;
pub mod calls;
mod chain;
pub mod deploy;
mod deployed;
mod event;
mod intent;
mod lane_signer;
pub mod lmsr;
mod owner;
pub mod provision;
mod quotes;
mod reads;
mod remote;
mod roles;
mod signer;
mod socket;
mod state;
mod transactions;
mod transfers;

pub use assertion::Assertion;
pub use batch::{Call, batch_digest};
pub use blocks::{BlockEvents, Blocks};
pub use calls::MarketTerms;
pub use chain::{Chain, Contracts, http_provider};
pub use deploy::DeploySettings;
pub use event::{ChainEvent, EventKind, ExecutedBatch};
pub use intent::{Intent, IntentSide, execute_calldata};
pub use lane_signer::{LaneSigner, RemoteKey, SignerError};
pub use owner::{AccountOwner, ParseOwnerError};
pub use provision::{KeyPolicy, UnsignedBatch};
pub use quotes::{MAX_CONCURRENT_CALLS, QuoteRequest};
pub use remote::{Web3signer, open_aws_key, open_gcp_key};
pub use roles::{ParseRoleError, Role};
pub use signer::Signer;
pub use socket::{is_socket_url, provider, socket_url};
pub use state::{
    AccountState, ChainMarketStatus, ExecutorProposal, ExecutorState, ExecutorVolume, Fill, MarketOnChain,
    MarketSchedule, OutcomeOnChain, Policy, Proposal, RoleProposal, Seat, Seats, SpendingLimits,
    face_value_usdc_atomic, token_id, tokens_of_face_value,
};
pub use transactions::{Fees, Receipt, SendOutcome, SignedTx, Transaction};
pub use transfers::UsdcTransfer;
