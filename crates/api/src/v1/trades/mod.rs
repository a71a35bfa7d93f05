//! The handlers of trades.

pub mod batch;
pub mod confirm;
pub mod create;
mod create_answer;
pub mod read;
mod view;
