//! Foretell's values and rules. Pure: no async, no I/O, no clock reads; time and randomness come in as arguments.

pub mod code;
pub mod guide;
pub mod ids;
pub mod key;
pub mod limits;
pub mod market;
pub mod money;
pub mod page;
pub mod position;
pub mod risk;
mod schema;
pub mod time;
pub mod trade;

pub use code::ErrorCode;
pub use guide::Guide;
pub use money::{Cents, Usdc, UsdcDelta, Wad};
pub use time::{Clock, Timestamp};
