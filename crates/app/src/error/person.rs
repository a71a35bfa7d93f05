//! Errors of people who sign in: the web application shows each in its own words.

use alloy_primitives::Address;
use domain::Timestamp;
use domain::passkey::PasskeyRefusal;
use store::StoreError;

use crate::AppError;

/// The reason why a person cannot sign in, or cannot do something within a session.
#[derive(Debug, thiserror::Error)]
pub enum PersonError {
    #[error("the web application is switched off")]
    WebOff,
    /// Used, expired, of another purpose, of another user, or never issued.
    #[error("the challenge was used or has expired: begin again")]
    ChallengeUnusable,
    #[error(transparent)]
    Passkey(#[from] PasskeyRefusal),
    #[error("the wallet must sign the text that the service wrote")]
    WalletSignature,
    #[error("no user signs in with this passkey or wallet")]
    UnknownCredential,
    /// The person must choose one of these accounts.
    #[error("the wallet signs in to several accounts")]
    SeveralAccounts { accounts: Vec<AccountChoice> },
    #[error("this passkey or wallet already signs in")]
    CredentialTaken,
    #[error("a user must have at most {} passkeys and wallets", store::credentials::MAX_PER_USER)]
    TooManyCredentials,
    #[error("the last passkey or wallet must not be removed")]
    LastCredential,
    #[error("this passkey or wallet owns the account: remove the owner first")]
    CredentialOwnsAccount,
    #[error("a signed act that changes the owners of the account has not ended yet")]
    OwnersChanging,
    /// A step-up with a wallet by a user who has a passkey, or an admin without one.
    #[error("a passkey is required")]
    PasskeyRequired,
    #[error("too many failed sign-ins from this address")]
    LockedOut { until: Timestamp },
    #[error("the session has ended: sign in again")]
    SignedOut,
    #[error("a passkey or wallet must confirm this within the last five minutes")]
    StepUpRequired,
    #[error("the operator does not allow this from the country")]
    CountryRefused,
    #[error("this requires the role admin")]
    AdminRequired,
    #[error(transparent)]
    App(#[from] AppError),
}

/// An account that a wallet signs in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountChoice {
    pub account: Address,
    /// The user's name.
    pub name: String,
    pub created_at: Timestamp,
}

impl PersonError {
    /// Returns whether this is a failed sign-in, which counts towards the address's lockout.
    pub const fn is_failed_sign_in(&self) -> bool {
        matches!(
            self,
            Self::ChallengeUnusable | Self::Passkey(_) | Self::WalletSignature | Self::UnknownCredential
        )
    }
}

impl From<StoreError> for PersonError {
    fn from(error: StoreError) -> Self {
        Self::App(error.into())
    }
}
