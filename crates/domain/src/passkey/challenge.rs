//! Challenges: bytes that a passkey or a wallet signs, for one purpose.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::hex;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::words::words;

const PURPOSE_LENGTH: usize = 8;
const RANDOM_LENGTH: usize = 32;
const LENGTH: usize = PURPOSE_LENGTH + RANDOM_LENGTH;

words! {
    /// The purpose of a challenge. An answer is valid only for the purpose that it was signed for.
    ChallengePurpose, UnknownPurpose {
        SignUp = "sign-up",
        SignIn = "sign-in",
        /// To prove within a session that the user is still the same person.
        StepUp = "step-up",
        /// To add a sign-in key to a user.
        AddKey = "add-key",
        /// To confirm one act of an admin. The challenge contains the act's hash.
        Admin = "admin",
    }
}

/// A challenge of 40 bytes: 8 bytes name the purpose, and 32 are random or the hash of an admin's
/// act. Its text form is unpadded base64url, as in the client data of WebAuthn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Challenge {
    purpose: ChallengePurpose,
    random: [u8; RANDOM_LENGTH],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a challenge of this service")]
pub struct ParseChallengeError;

impl Challenge {
    pub const fn new(purpose: ChallengePurpose, random: [u8; RANDOM_LENGTH]) -> Self {
        Self { purpose, random }
    }

    /// Reads 40 bytes. The 32 bytes of a batch's digest are never accepted.
    ///
    /// # Errors
    /// If the length is not 40, or the purpose is unknown.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseChallengeError> {
        let bytes: &[u8; LENGTH] = bytes.try_into().map_err(|_| ParseChallengeError)?;
        let (name, random) = bytes.split_at(PURPOSE_LENGTH);
        let purpose = ChallengePurpose::ALL.iter().find(|purpose| padded(**purpose) == name);
        let random = random.try_into().map_err(|_| ParseChallengeError)?;
        purpose.map(|purpose| Self { purpose: *purpose, random }).ok_or(ParseChallengeError)
    }

    pub fn to_bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let (name, random) = bytes.split_at_mut(PURPOSE_LENGTH);
        name.copy_from_slice(&padded(self.purpose));
        random.copy_from_slice(&self.random);
        bytes
    }

    pub const fn purpose(&self) -> ChallengePurpose {
        self.purpose
    }

    /// Returns the user handle of a passkey that is created with this challenge. It says nothing
    /// about the user, and a page cannot choose it.
    pub fn user_handle(&self) -> [u8; 32] {
        Sha256::new().chain_update(b"user handle").chain_update(self.to_bytes()).finalize().into()
    }

    /// Returns the nonce of a wallet's text for this challenge: letters and digits only.
    pub fn nonce(&self) -> String {
        hex::encode(self.random)
    }
}

/// Returns the purpose's name, padded with zeros.
fn padded(purpose: ChallengePurpose) -> [u8; PURPOSE_LENGTH] {
    let mut name = [0; PURPOSE_LENGTH];
    // A longer name would not be unique; a test checks that none is.
    name.iter_mut().zip(purpose.as_str().bytes()).for_each(|(to, from)| *to = from);
    name
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.to_bytes()))
    }
}

impl FromStr for Challenge {
    type Err = ParseChallengeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_bytes(&URL_SAFE_NO_PAD.decode(text).map_err(|_| ParseChallengeError)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_round_trip_and_fit_their_purpose_into_eight_bytes() {
        for purpose in ChallengePurpose::ALL {
            assert!(purpose.as_str().len() <= PURPOSE_LENGTH);
            let challenge = Challenge::new(*purpose, [7; 32]);
            assert_eq!(Challenge::from_bytes(&challenge.to_bytes()), Ok(challenge));
            assert_eq!(challenge.to_string().parse(), Ok(challenge));
        }
    }

    #[test]
    fn other_lengths_and_purposes_are_rejected() {
        let bytes = Challenge::new(ChallengePurpose::SignIn, [7; 32]).to_bytes();
        for length in (0..LENGTH).chain([LENGTH + 1]) {
            let other: Vec<u8> = bytes.iter().copied().cycle().take(length).collect();
            assert_eq!(Challenge::from_bytes(&other), Err(ParseChallengeError), "{length}");
        }
        let mut other = bytes;
        other[0] ^= 1;
        assert_eq!(Challenge::from_bytes(&other), Err(ParseChallengeError));
    }

    #[test]
    fn user_handles_and_nonces_differ_between_challenges() {
        let [one, other] = [[1; 32], [2; 32]].map(|random| Challenge::new(ChallengePurpose::SignUp, random));
        assert_ne!(one.user_handle(), other.user_handle());
        assert_ne!(one.nonce(), other.nonce());
        assert!(one.nonce().len() >= 8 && one.nonce().bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
}
