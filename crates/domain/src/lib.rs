//! The service's values and rules. Pure: no async code, no I/O and no clock. Time and randomness
//! are arguments.

pub mod candle;
pub mod code;
pub mod credential;
pub mod delegation;
pub mod event;
mod event_kind;
pub mod field_error;
pub mod ids;
pub mod key;
pub mod lane;
pub mod limits;
pub mod market;
pub mod money;
pub mod network;
pub mod owner_act;
pub mod page;
pub mod passkey;
pub mod position;
pub mod public_name;
pub mod rate;
pub mod redemption;
pub mod risk;
pub mod sandbox;
mod schema;
pub mod search;
mod secret_key;
pub mod session;
pub mod signature;
pub mod text;
pub mod thread;
pub mod time;
pub mod trade;
pub mod trending;
pub mod usage;
pub mod version;
pub mod wallet;
pub mod webhook;
mod words;

pub use code::ErrorCode;
pub use money::{Cents, Usdc, UsdcDelta, Wad};
pub use secret_key::SecretKey;
pub use time::{Clock, Timestamp};

/// The webhook guide, included so that its Rust examples run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/webhooks.md")]
pub struct ReceiversGuide;
