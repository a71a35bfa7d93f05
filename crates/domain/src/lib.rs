//! Foretell's values and rules. Pure: no async, no I/O, no clock reads; time and randomness come in as arguments.

pub mod candle;
pub mod code;
pub mod delegation;
pub mod document;
pub mod entity_tag;
pub mod event;
pub mod field_error;
pub mod forwarded;
pub mod guide;
pub mod idempotency_key;
pub mod ids;
pub mod key;
pub mod limits;
pub mod market;
pub mod money;
pub mod network;
pub mod page;
pub mod position;
pub mod rate;
pub mod redemption;
pub mod request_head;
pub mod risk;
mod schema;
pub mod search;
pub mod signature;
pub mod text;
pub mod thread;
pub mod time;
pub mod trade;
pub mod trending;
pub mod usage;
pub mod version;
pub mod webhook;
mod words;

pub use code::ErrorCode;
pub use guide::Guide;
pub use idempotency_key::IdempotencyKey;
pub use money::{Cents, Usdc, UsdcDelta, Wad};
pub use time::{Clock, Timestamp};

/// The receivers' guide: its Rust is compiled and run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/webhooks.md")]
pub struct ReceiversGuide;
