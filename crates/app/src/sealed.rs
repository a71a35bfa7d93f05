//! Secrets at rest: encrypted under a key that has a name, so that it can be changed while old texts stay readable.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

/// The key under which secrets are sealed, and its name.
#[derive(Clone)]
pub struct SealingKey {
    /// The key's name, kept with each sealed text.
    pub id: String,
    /// The key.
    pub key: [u8; 32],
}

/// The text was not sealed under this key, or was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sealed text does not open under the configured key")]
pub struct UnsealError;

impl SealingKey {
    /// Seals `secret` for the row that `context` names; a text moved to another row does not open. `nonce` is random.
    pub fn seal(&self, secret: &[u8], context: &str, nonce: [u8; 24]) -> Result<String, UnsealError> {
        let payload = Payload { msg: secret, aad: context.as_bytes() };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload).map_err(|_| UnsealError)?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        Ok(format!("{}:{}", self.id, STANDARD_NO_PAD.encode(bytes)))
    }

    /// Opens what [`Self::seal`] gave for the same `context`.
    pub fn unseal(&self, sealed: &str, context: &str) -> Result<Vec<u8>, UnsealError> {
        let (id, text) = sealed.split_once(':').ok_or(UnsealError)?;
        if id != self.id {
            return Err(UnsealError);
        }
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| UnsealError)?;
        let (nonce, sealed) = bytes.split_at_checked(24).ok_or(UnsealError)?;
        let nonce: [u8; 24] = nonce.try_into().map_err(|_| UnsealError)?;
        let payload = Payload { msg: sealed, aad: context.as_bytes() };
        self.cipher().decrypt(&XNonce::from(nonce), payload).map_err(|_| UnsealError)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SealingKey {
        SealingKey { id: "k1".into(), key: [3; 32] }
    }

    #[test]
    fn a_secret_opens_only_in_its_own_row_and_under_its_own_key() {
        let sealed = key().seal(b"whsec", "row-1", [9; 24]).unwrap();
        assert_eq!(key().unseal(&sealed, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(key().unseal(&sealed, "row-2"), Err(UnsealError));
        let other = SealingKey { key: [4; 32], ..key() };
        assert_eq!(other.unseal(&sealed, "row-1"), Err(UnsealError));
        assert!(!sealed.contains("whsec"));
    }
}
