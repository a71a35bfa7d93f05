//! API keys: shown once in plaintext, and stored as digests.

mod act;
mod agent;
pub mod audit;
mod authenticate;
mod issue;
mod own;
mod pause;
mod revoke;
mod web;

pub use agent::mark_agent;
pub use authenticate::{authenticate, check_again, is_failed_authentication, note_success};
pub(crate) use issue::issue_as;
pub use issue::{IssueKey, IssuedKey, issue};
pub use own::{find_own, list_own};
pub(crate) use own::{lower_caps, set_access};
pub(crate) use pause::forget;
pub use pause::{pause, pause_noted, resume, stopped};
pub use revoke::{Revoked, revoke};
pub use web::choose_caps;
pub(crate) use web::{NewWebKey, insert_web_key, new_web_key};
