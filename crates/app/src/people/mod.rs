//! People: users who sign up and sign in themselves.

mod country;
mod credentials;
mod operator;
mod own_keys;
mod pause;
mod profile;
mod sign_up;
mod trading;

pub use country::Country;
pub use credentials::{
    add_credential, count_other_owners, list_credentials, remove_credential, rename_credential,
};
pub use operator::{end_sessions, set_role, set_tier};
pub use own_keys::{
    OwnKey, choose_second_owner, issue_key, resume_key, rotate_webhook_secret, set_key_access,
    set_webhook_url,
};
pub use pause::{pause_trading, resume_trading};
pub use profile::{find_public_name, rename, set_public_name};
pub use sign_up::{SignUp, sign_up};
pub use trading::{confirm_trade, create_trade, list_trades_to_export, prepare_act};
