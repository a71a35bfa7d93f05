//! People: users who sign up and sign in themselves.

mod credentials;
mod operator;
mod pause;
mod profile;
mod sign_up;

pub use credentials::{add_credential, list_credentials, remove_credential, rename_credential};
pub use operator::{end_sessions, set_role, set_tier};
pub use pause::{pause_trading, resume_trading};
pub use profile::{find_public_name, rename, set_public_name};
pub use sign_up::{SignUp, sign_up};
