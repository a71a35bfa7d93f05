//! Passkeys: verifies the registrations and assertions that a browser returns.
//!
//! Accepts the passkeys that the account contract accepts: ES256 keys of a user who is present and
//! verified. So every passkey that signs in can also sign for an account that it owns.
//!
//! A [`Challenge`] to sign in has 40 bytes, and the challenge of an account's batch has 32, so an
//! assertion for the one is never valid for the other.

mod assertion;
mod authenticator_data;
mod challenge;
mod client_data;
mod public_key;
mod registration;
mod relying_party;
#[cfg(any(test, feature = "test-support"))]
mod soft_key;
#[cfg(test)]
mod tests;

pub use assertion::{
    Assertion, Passkey, PasskeyUse, check_batch_statements, verify_assertion, verify_batch_assertion,
};
pub use authenticator_data::{BackupState, UnknownBackupState};
pub use challenge::{Challenge, ChallengePurpose, ParseChallengeError, UnknownPurpose};
pub use client_data::challenge_of;
pub use public_key::PublicKey;
pub use registration::{NewPasskey, Registration, verify_registration};
pub use relying_party::{RelyingParty, RelyingPartyError};
#[cfg(any(test, feature = "test-support"))]
pub use soft_key::SoftKey;

/// The reason why a registration or an assertion is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyRefusal {
    #[error("the client data must be JSON in the form of WebAuthn")]
    ClientDataMalformed,
    #[error("the client data must have the type of this ceremony")]
    WrongType,
    #[error("the challenge must be the one that the service issued")]
    WrongChallenge,
    #[error("the origin must be that of the web application")]
    WrongOrigin,
    #[error("the passkey must not be used in a frame of another site")]
    CrossOrigin,
    #[error("the authenticator data is malformed")]
    AuthenticatorDataMalformed,
    #[error("the passkey must belong to this relying party")]
    WrongRelyingParty,
    #[error("the user must be present")]
    UserAbsent,
    #[error("the authenticator must verify the user")]
    UserNotVerified,
    #[error("a passkey that cannot be backed up must not be backed up")]
    BackupContradictory,
    #[error("the credential id must be the one in the authenticator data, with 1 to 1023 bytes")]
    WrongCredentialId,
    #[error("the key must be an ES256 key, and the one in the authenticator data")]
    WrongKey,
    #[error("the signature must be an ES256 signature of this passkey")]
    WrongSignature,
    #[error("the signature counter must not go back")]
    CounterWentBack,
}
