//! Failed authentications that are counted together. Those of one kind of credential never count
//! against another: 20 wrong API keys from an office must not keep its people from signing in.

use std::fmt;
use std::net::IpAddr;

use domain::rate::Scope;
use sha2::{Digest, Sha256};

/// The kind of a credential that was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    ApiKey,
    SignIn,
    SignUp,
    StepUp,
}

impl FailureKind {
    pub const ALL: [Self; 4] = [Self::ApiKey, Self::SignIn, Self::SignUp, Self::StepUp];

    const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::SignIn => "sign-in",
            Self::SignUp => "sign-up",
            Self::StepUp => "step-up",
        }
    }
}

/// The first 16 bytes of the hash of a passkey's id or a wallet's address. Clients can make up such
/// ids, so only the hash is kept: all entries have the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialMark(u128);

impl CredentialMark {
    pub fn of(id: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(id).into();
        Self(digest.iter().take(16).fold(0, |mark, byte| mark << 8 | u128::from(*byte)))
    }
}

/// The failures that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Failures {
    /// Those of one kind from a network, with the scope that counts it as one: 192.0.2.0 is an address
    /// and a /24.
    Network(FailureKind, Scope, IpAddr),
    /// Those of one passkey or wallet from anywhere.
    Credential(CredentialMark),
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(kind, Scope::Address, network) => write!(f, "{}:{network}", kind.as_str()),
            Self::Network(kind, scope, network) => write!(f, "{}:{scope}:{network}", kind.as_str()),
            Self::Credential(CredentialMark(mark)) => write!(f, "credential:{mark:032x}"),
        }
    }
}
