//! API keys: issued once in plaintext, found again by their digest.

mod act;
mod allowlists;
pub mod audit;
mod authenticate;
mod cache;
mod issue;
mod pause;
mod revoke;
pub mod rewrap;
pub mod webhook_secret;
mod webhook_url;

pub use allowlists::Allowlists;
pub use authenticate::{Caller, authenticate, is_failed_authentication, judge_again, note_success};
pub use cache::KeyCache;
pub use issue::{IssueKey, IssuedKey, issue};
pub use pause::{pause, resume, stopped};
pub use revoke::{Revoked, revoke};
pub use webhook_url::set_webhook_url;
