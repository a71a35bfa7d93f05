//! API keys: issued once in plaintext, found again by their digest.

mod authenticate;
mod issue;
mod pause;

pub use authenticate::{Caller, authenticate};
pub use issue::{IssueKey, IssuedKey, issue, revoke};
pub use pause::{pause, paused, resume};
