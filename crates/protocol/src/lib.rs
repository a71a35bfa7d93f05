//! The forms of what crosses a wire, as pure functions: no I/O, no clock.

pub mod cursor;
pub mod document;
pub mod entity_tag;
pub mod forwarded;
pub mod guide;
pub mod idempotency_key;
pub mod request_head;

pub use cursor::{CursorCodec, CursorError};
pub use guide::{Documented, Guide};
pub use idempotency_key::IdempotencyKey;
