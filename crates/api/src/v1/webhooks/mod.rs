//! The handlers of a key's webhook.

pub mod endpoint;
pub mod events;
pub mod secret;
pub mod sends;
