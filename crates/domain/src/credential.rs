//! Credentials: the keys with which a user signs in, as passkeys or wallets.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, hex};

use crate::passkey::PublicKey;
use crate::words::words;

words! {
    /// The role of a credential.
    CredentialKind, UnknownCredentialKind {
        /// An owner of the account. It signs in as long as it is one.
        Owner = "owner",
        /// It signs in, but cannot sign for the account.
        SignIn = "sign_in",
    }
}

words! {
    /// The role of a user.
    Role, UnknownRole {
        User = "user",
        /// May act in the operator's pages.
        Admin = "admin",
    }
}

/// The public part of a credential. Its text form is that of an account's owner: `0x` and the
/// lower-case hex of 20 or 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialKey {
    Wallet(Address),
    Passkey(PublicKey),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address or a P-256 key in hex")]
pub struct ParseCredentialKeyError;

impl fmt::Display for CredentialKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wallet(address) => write!(f, "0x{}", hex::encode(address)),
            Self::Passkey(key) => write!(f, "0x{}", hex::encode(key.to_bytes())),
        }
    }
}

impl FromStr for CredentialKey {
    type Err = ParseCredentialKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = hex::decode(text).map_err(|_| ParseCredentialKeyError)?;
        match bytes.len() {
            20 => Ok(Self::Wallet(Address::from_slice(&bytes))),
            _ => PublicKey::from_bytes(&bytes).map(Self::Passkey).map_err(|_| ParseCredentialKeyError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passkey::{RelyingParty, SoftKey};

    #[test]
    fn keys_round_trip_through_text() {
        let party = RelyingParty::new("https://foretell.example", None).unwrap();
        let passkey = CredentialKey::Passkey(SoftKey::new(&party, [1; 32]).public_key());
        for key in [CredentialKey::Wallet(Address::repeat_byte(0xab)), passkey] {
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["", "0x", &"1".repeat(128), "0x00"] {
            assert_eq!(text.parse::<CredentialKey>(), Err(ParseCredentialKeyError), "{text}");
        }
    }
}
