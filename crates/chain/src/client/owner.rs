//! Who owns a smart account.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256, Bytes};
use serde::{Deserialize, Serialize};

/// The owner of a smart account: an EOA's address, or a passkey's P-256 public key. In text: lower-case hex
/// of the 20 or 64 bytes, with `0x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The holder of a secp256k1 key, signing with ECDSA.
    Eoa(Address),
    /// The holder of a P-256 key, signing with WebAuthn.
    Passkey {
        /// The point's first coordinate, big-endian.
        x: B256,
        /// The point's second coordinate, big-endian.
        y: B256,
    },
}

/// The bytes or the text are no owner: neither 20 nor 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an owner is 20 bytes of an address or 64 bytes of a P-256 key, in hex")]
pub struct ParseOwnerError;

impl Owner {
    /// The bytes as the account contract keeps them: 20 of the address, or 64 of x and y.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Eoa(address) => Bytes::copy_from_slice(address.as_slice()),
            Self::Passkey { x, y } => [x.0, y.0].concat().into(),
        }
    }

    /// Reads 20 or 64 bytes. Whether 64 bytes are a point of the curve is checked by the contract.
    ///
    /// # Errors
    /// Any other length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseOwnerError> {
        match (bytes.len(), bytes.split_at_checked(32)) {
            (20, _) => Ok(Self::Eoa(Address::from_slice(bytes))),
            (64, Some((x, y))) => Ok(Self::Passkey { x: B256::from_slice(x), y: B256::from_slice(y) }),
            _ => Err(ParseOwnerError),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.to_bytes()))
    }
}

impl FromStr for Owner {
    type Err = ParseOwnerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        Self::from_bytes(&hex::decode(digits).map_err(|_| ParseOwnerError)?)
    }
}

impl Serialize for Owner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_back_from_its_text() {
        let passkey = Owner::Passkey { x: B256::repeat_byte(1), y: B256::repeat_byte(2) };
        for owner in [Owner::Eoa(Address::repeat_byte(0xab)), passkey] {
            assert_eq!(owner.to_string().parse(), Ok(owner));
        }
        assert_eq!(Owner::Eoa(Address::repeat_byte(0xab)).to_string(), format!("0x{}", "ab".repeat(20)));
    }

    #[test]
    fn other_lengths_are_no_owner() {
        assert_eq!(Owner::from_bytes(&[0; 32]), Err(ParseOwnerError));
        assert_eq!("0xzz".parse::<Owner>(), Err(ParseOwnerError));
    }
}
