//! API keys: issued once in plaintext, found again by their digest.

mod authenticate;
mod issue;

pub use authenticate::{Caller, authenticate, is_failed_authentication};
pub use issue::{IssueKey, IssuedKey, issue, revoke};
