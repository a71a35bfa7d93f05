//! Webhooks: the rules of what is posted to a key's endpoint.

pub mod target;
