//! People: users who sign up and sign in themselves.

mod api_keys;
mod country;
mod credentials;
mod operator;
mod pause;
mod profile;
mod sign_up;
mod trading;

pub use api_keys::{
    KeyEnd, NewApiKey, issue_api_key, lower_api_key_caps, mark_api_key_as_agent, pause_api_key,
    redeliver_event, resume_api_key, revoke_api_key, rotate_api_key_secret, send_api_key_test,
    set_api_key_access, set_api_key_webhook,
};
pub use country::Country;
pub use credentials::{
    add_credential, count_other_owners, list_credentials, remove_credential, rename_credential,
};
pub use operator::{end_sessions, set_role, set_tier};
pub use pause::{pause_trading, resume_trading};
pub use profile::{find_public_name, rename, set_public_name};
pub use sign_up::{SignUp, sign_up};
pub use trading::{confirm_trade, create_trade, prepare_act};
