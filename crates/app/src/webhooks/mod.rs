//! Webhooks: what is told to the keys' endpoints.

pub mod sender;
