//! API keys: issued once in plaintext, found again by their digest.

mod authenticate;
mod issue;

pub use authenticate::{Caller, authenticate};
pub use issue::{IssueKey, IssuedKey, issue, revoke};
