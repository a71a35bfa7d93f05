//! The handlers of trades.

pub mod confirm;
pub mod create;
pub mod read;
mod view;
