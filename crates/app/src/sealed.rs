//! Secrets at rest: encrypted under a key that has a name, so that it can be changed while old texts stay readable.
//!
//! A change of the key takes three steps. The new key is added to those that open, in every process; then it becomes the one
//! that seals, and the old one opens only; then everything that is stored is sealed again, and the old key can go. No process
//! ever meets a text that it cannot open.

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

/// The key that seals, and others that open what was sealed under them.
#[derive(Clone)]
pub struct SealingKeys {
    current: SealingKey,
    others: Vec<SealingKey>,
}

impl From<SealingKey> for SealingKeys {
    fn from(current: SealingKey) -> Self {
        Self { current, others: Vec::new() }
    }
}

impl SealingKeys {
    /// These keys: `current` seals, all of them open.
    pub const fn new(current: SealingKey, others: Vec<SealingKey>) -> Self {
        Self { current, others }
    }

    /// Seals under the current key, as [`SealingKey::seal`].
    pub fn seal(&self, secret: &[u8], context: &str, nonce: [u8; 24]) -> Result<String, UnsealError> {
        self.current.seal(secret, context, nonce)
    }

    /// Opens what any of the keys has sealed for the same `context`.
    pub fn unseal(&self, sealed: &str, context: &str) -> Result<Vec<u8>, UnsealError> {
        let mut keys = std::iter::once(&self.current).chain(&self.others);
        keys.find_map(|key| key.unseal(sealed, context).ok()).ok_or(UnsealError)
    }

    /// What every text begins with that was sealed under the current key.
    pub fn current_prefix(&self) -> String {
        format!("{}:", self.current.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, byte: u8) -> SealingKey {
        SealingKey { id: id.to_owned(), key: [byte; 32] }
    }

    #[test]
    fn a_secret_opens_only_in_its_own_row_and_under_its_own_key() {
        let key = key("k1", 3);
        let sealed = key.seal(b"whsec", "row-1", [9; 24]).unwrap();
        assert_eq!(key.unseal(&sealed, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(key.unseal(&sealed, "row-2"), Err(UnsealError));
        let other = SealingKey { key: [4; 32], ..key };
        assert_eq!(other.unseal(&sealed, "row-1"), Err(UnsealError));
        assert!(!sealed.contains("whsec"));
    }

    #[test]
    fn the_current_key_seals_and_every_key_opens() {
        let old = SealingKeys::from(key("old", 1));
        let both = SealingKeys::new(key("new", 2), vec![key("older", 0), key("old", 1)]);
        let new = SealingKeys::from(key("new", 2));
        let of_old = old.seal(b"whsec", "row-1", [9; 24]).unwrap();
        let of_both = both.seal(b"whsec", "row-1", [9; 24]).unwrap();
        assert!(of_both.starts_with(&both.current_prefix()) && !of_old.starts_with(&both.current_prefix()));
        assert_eq!(both.unseal(&of_old, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(both.unseal(&of_both, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(new.unseal(&of_both, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(new.unseal(&of_old, "row-1"), Err(UnsealError));
        assert_eq!(both.unseal(&of_old, "row-2"), Err(UnsealError));
    }

    #[test]
    fn two_keys_of_one_name_both_open() {
        let of_second = key("k", 2).seal(b"whsec", "row-1", [9; 24]).unwrap();
        let keys = SealingKeys::new(key("k", 1), vec![key("k", 2)]);
        assert_eq!(keys.unseal(&of_second, "row-1"), Ok(b"whsec".to_vec()));
    }

    #[test]
    fn text_that_was_never_sealed_does_not_open() {
        let keys = SealingKeys::from(key("k", 1));
        for text in ["", "k", "k:", "k:AAAA", "k:!", "k:\u{e9}", ":AAAA"] {
            assert_eq!(keys.unseal(text, "row-1"), Err(UnsealError), "{text}");
        }
    }
}
