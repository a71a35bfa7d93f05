//! The relying party of passkeys in tests.

use domain::passkey::RelyingParty;

/// The address of the web application in tests.
pub const APP_URL: &str = "https://foretell.example";

/// The relying party of tests.
pub fn relying_party() -> RelyingParty {
    RelyingParty::new(APP_URL, None).expect("an https URL")
}
