//! Owners of smart accounts, and the owner that a signature names.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256, Bytes, Signature};
use serde::{Deserialize, Serialize};

/// The length of an ECDSA signature: r, s and v.
const ECDSA_LENGTH: usize = 65;
/// The length of a passkey's coordinates x and y.
const PASSKEY_LENGTH: usize = 64;

/// An owner of a smart account: the address of an EOA, or the P-256 public key of a passkey. Its
/// text form is `0x` and the lower-case hex of its 20 or 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccountOwner {
    /// A secp256k1 key, which signs with ECDSA.
    Eoa(Address),
    /// A P-256 key, which signs with WebAuthn.
    Passkey {
        /// The x coordinate, big-endian.
        x: B256,
        /// The y coordinate, big-endian.
        y: B256,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an owner is 20 bytes of an address or 64 bytes of a P-256 key, in hex")]
pub struct ParseOwnerError;

impl AccountOwner {
    /// Returns the bytes that the account contract stores: the 20 bytes of the address, or the 64
    /// bytes of x and y.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Eoa(address) => Bytes::copy_from_slice(address.as_slice()),
            Self::Passkey { x, y } => [x.0, y.0].concat().into(),
        }
    }

    /// Returns the owner that a signature over `digest` names. An ECDSA signature names the address
    /// that it recovers to. A passkey's signature begins with the 64 bytes of the passkey. `None`
    /// if the signature has neither form.
    ///
    /// Does not verify a passkey's assertion: the contract does.
    pub fn of_signature(signature: &[u8], digest: B256) -> Option<Self> {
        // A passkey's signature is always longer: an assertion follows its 64 bytes.
        if signature.len() == ECDSA_LENGTH {
            let signature = Signature::from_raw(signature).ok()?;
            return signature.recover_address_from_prehash(&digest).ok().map(Self::Eoa);
        }
        Self::from_bytes(signature.get(..PASSKEY_LENGTH)?).ok()
    }

    /// Returns an ECDSA signature in the form that the contract accepts: `s` in its lower half, and
    /// `v` 27 or 28. Wallets may return others. `None` if it does not have 65 bytes or no valid `v`.
    pub fn normalize_ecdsa(signature: &[u8]) -> Option<Bytes> {
        let signature = Signature::from_raw(signature).ok().filter(|_| signature.len() == ECDSA_LENGTH)?;
        Some(signature.normalized_s().as_bytes().into())
    }

    /// Reads 20 or 64 bytes. Does not check that 64 bytes are a point on the curve: the contract
    /// does.
    ///
    /// # Errors
    ///
    /// If the length is neither 20 nor 64.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseOwnerError> {
        match (bytes.len(), bytes.split_at_checked(32)) {
            (20, _) => Ok(Self::Eoa(Address::from_slice(bytes))),
            (64, Some((x, y))) => Ok(Self::Passkey { x: B256::from_slice(x), y: B256::from_slice(y) }),
            _ => Err(ParseOwnerError),
        }
    }
}

impl fmt::Display for AccountOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.to_bytes()))
    }
}

impl FromStr for AccountOwner {
    type Err = ParseOwnerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        Self::from_bytes(&hex::decode(digits).map_err(|_| ParseOwnerError)?)
    }
}

impl Serialize for AccountOwner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AccountOwner {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_round_trip_through_text() {
        let passkey = AccountOwner::Passkey { x: B256::repeat_byte(1), y: B256::repeat_byte(2) };
        for owner in [AccountOwner::Eoa(Address::repeat_byte(0xab)), passkey] {
            assert_eq!(owner.to_string().parse(), Ok(owner));
        }
        assert_eq!(
            AccountOwner::Eoa(Address::repeat_byte(0xab)).to_string(),
            format!("0x{}", "ab".repeat(20))
        );
    }

    #[test]
    fn a_signature_names_its_owner() {
        let digest = B256::repeat_byte(7);
        let key = crate::Signer::random([5; 32]).unwrap();
        let signature = key.sign_digest(digest).unwrap();
        assert_eq!(AccountOwner::of_signature(&signature, digest), Some(key.owner()));
        assert_ne!(AccountOwner::of_signature(&signature, B256::ZERO), Some(key.owner()));
        let passkey = AccountOwner::Passkey { x: B256::repeat_byte(1), y: B256::repeat_byte(2) };
        let named = [&passkey.to_bytes()[..], &[0; 300]].concat();
        assert_eq!(AccountOwner::of_signature(&named, digest), Some(passkey));
        for other in [&[0; 0][..], &[0; 63]] {
            assert_eq!(AccountOwner::of_signature(other, digest), None);
        }
    }

    #[test]
    fn an_owner_of_another_length_is_rejected() {
        assert_eq!(AccountOwner::from_bytes(&[0; 32]), Err(ParseOwnerError));
        assert_eq!("0xzz".parse::<AccountOwner>(), Err(ParseOwnerError));
    }
}
