//! Keys of 32 bytes.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::hex;
use secrecy::{ExposeSecret, SecretBox};

/// A secret key of 32 bytes. `Debug` does not print it. All clones share one copy, which is
/// zeroized when the last of them is dropped.
#[derive(Clone)]
pub struct SecretKey(Arc<SecretBox<[u8; 32]>>);

impl SecretKey {
    /// Reads 32 bytes of hex, with or without `0x`.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut decoded = Ok(());
        let key = SecretBox::init_with_mut(|bytes: &mut [u8; 32]| {
            decoded = hex::decode_to_slice(text, bytes);
        });
        decoded.is_ok().then(|| Self(Arc::new(key)))
    }

    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose_secret()
    }
}

impl From<[u8; 32]> for SecretKey {
    fn from(bytes: [u8; 32]) -> Self {
        Self(Arc::new(SecretBox::new(Box::new(bytes))))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_32_bytes_of_hex() {
        for prefix in ["", "0x"] {
            let key = SecretKey::from_hex(&format!("{prefix}{}", "0a".repeat(32))).unwrap();
            assert_eq!(key.expose(), &[10; 32]);
        }
        for text in ["", "0x", "0a", &"0a".repeat(31), &"0a".repeat(33), &"0g".repeat(32)] {
            assert!(SecretKey::from_hex(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        assert_eq!(format!("{:?}", SecretKey::from([171; 32])), "SecretKey(..)");
    }
}
