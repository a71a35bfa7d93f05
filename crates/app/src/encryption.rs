//! Encryption of secrets at rest, with named keys so that the key can be rotated.
//!
//! A rotation takes three steps:
//! 1. Add the new key for decryption, in every process.
//! 2. Make the new key the one that encrypts. The old one then only decrypts.
//! 3. Encrypt everything stored again, then remove the old key.
//!
//! That way no process ever reads a text that it cannot decrypt.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use domain::SecretKey;
use parking_lot::RwLock;
use secrecy::SecretSlice;

/// An encryption key with its name.
#[derive(Clone)]
pub struct SealingKey {
    /// The name, which is stored with each encrypted text.
    pub id: String,
    pub key: SecretKey,
}

/// The text was not encrypted with this key, or was modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the configured sealing keys cannot decrypt the text")]
pub struct UnsealError;

impl SealingKey {
    /// Encrypts `secret` for the row that `context` names, so that it cannot be decrypted in
    /// another row. `nonce` must be random.
    pub fn seal(&self, secret: &[u8], context: &str, nonce: [u8; 24]) -> Result<String, UnsealError> {
        let payload = Payload { msg: secret, aad: context.as_bytes() };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload).map_err(|_| UnsealError)?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        Ok(format!("{}:{}", self.id, STANDARD_NO_PAD.encode(bytes)))
    }

    /// Decrypts the result of [`Self::seal`] with the same `context`.
    pub fn unseal(&self, sealed: &str, context: &str) -> Result<SecretSlice<u8>, UnsealError> {
        let (id, text) = sealed.split_once(':').ok_or(UnsealError)?;
        if id != self.id {
            return Err(UnsealError);
        }
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| UnsealError)?;
        let (nonce, sealed) = bytes.split_at_checked(24).ok_or(UnsealError)?;
        let nonce: [u8; 24] = nonce.try_into().map_err(|_| UnsealError)?;
        let payload = Payload { msg: sealed, aad: context.as_bytes() };
        self.cipher().decrypt(&XNonce::from(nonce), payload).map(SecretSlice::from).map_err(|_| UnsealError)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.key.expose().into())
    }
}

/// The key that encrypts, and further keys that only decrypt. Clones share the keys, which can be
/// replaced while the service runs.
#[derive(Clone)]
pub struct SealingKeys(Arc<RwLock<Keys>>);

#[derive(Clone)]
struct Keys {
    /// `None` in a process without the secrets.
    current: Option<SealingKey>,
    others: Vec<SealingKey>,
}

impl From<SealingKey> for SealingKeys {
    fn from(current: SealingKey) -> Self {
        Self::new(current, Vec::new())
    }
}

impl SealingKeys {
    pub fn new(current: SealingKey, others: Vec<SealingKey>) -> Self {
        Self(Arc::new(RwLock::new(Keys { current: Some(current), others })))
    }

    /// Returns no keys: nothing can be encrypted or decrypted.
    pub fn none() -> Self {
        Self(Arc::new(RwLock::new(Keys { current: None, others: Vec::new() })))
    }

    /// Returns whether these are no keys.
    pub fn are_none(&self) -> bool {
        self.0.read().current.is_none()
    }

    /// Uses the keys of `other` from now on, in all clones.
    pub fn replace(&self, other: &Self) {
        let keys = other.0.read().clone();
        *self.0.write() = keys;
    }

    /// Encrypts with the current key, like [`SealingKey::seal`].
    pub fn seal(&self, secret: &[u8], context: &str, nonce: [u8; 24]) -> Result<String, UnsealError> {
        self.0.read().current.as_ref().ok_or(UnsealError)?.seal(secret, context, nonce)
    }

    /// Decrypts a text of any of the keys with the same `context`.
    pub fn unseal(&self, sealed: &str, context: &str) -> Result<SecretSlice<u8>, UnsealError> {
        let all = self.0.read();
        let mut keys = all.current.iter().chain(&all.others);
        keys.find_map(|key| key.unseal(sealed, context).ok()).ok_or(UnsealError)
    }

    /// Returns the prefix of every text that was encrypted with the current key.
    pub fn current_prefix(&self) -> String {
        self.0.read().current.as_ref().map_or_else(String::new, |current| format!("{}:", current.id))
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn key(id: &str, byte: u8) -> SealingKey {
        SealingKey { id: id.to_owned(), key: [byte; 32].into() }
    }

    fn open(keys: &SealingKeys, sealed: &str, context: &str) -> Result<Vec<u8>, UnsealError> {
        keys.unseal(sealed, context).map(|secret| secret.expose_secret().to_vec())
    }

    #[test]
    fn a_secret_decrypts_only_in_its_own_row_and_under_its_own_key() {
        let key = SealingKeys::from(key("k1", 3));
        let sealed = key.seal(b"whsec", "row-1", [9; 24]).unwrap();
        assert_eq!(open(&key, &sealed, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(open(&key, &sealed, "row-2"), Err(UnsealError));
        let other = SealingKeys::from(self::key("k1", 4));
        assert_eq!(open(&other, &sealed, "row-1"), Err(UnsealError));
        assert!(!sealed.contains("whsec"));
    }

    #[test]
    fn the_current_key_encrypts_and_every_key_decrypts() {
        let old = SealingKeys::from(key("old", 1));
        let both = SealingKeys::new(key("new", 2), vec![key("older", 0), key("old", 1)]);
        let new = SealingKeys::from(key("new", 2));
        let of_old = old.seal(b"whsec", "row-1", [9; 24]).unwrap();
        let of_both = both.seal(b"whsec", "row-1", [9; 24]).unwrap();
        assert!(of_both.starts_with(&both.current_prefix()) && !of_old.starts_with(&both.current_prefix()));
        assert_eq!(open(&both, &of_old, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(open(&both, &of_both, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(open(&new, &of_both, "row-1"), Ok(b"whsec".to_vec()));
        assert_eq!(open(&new, &of_old, "row-1"), Err(UnsealError));
        assert_eq!(open(&both, &of_old, "row-2"), Err(UnsealError));
    }

    #[test]
    fn without_keys_nothing_is_encrypted_or_decrypted() {
        let sealed = key("k", 1).seal(b"whsec", "row-1", [9; 24]).unwrap();
        let none = SealingKeys::none();
        assert!(none.are_none());
        assert_eq!(none.seal(b"whsec", "row-1", [9; 24]), Err(UnsealError));
        assert_eq!(open(&none, &sealed, "row-1"), Err(UnsealError));
    }

    #[test]
    fn replaced_keys_are_used_by_all_clones() {
        let keys = SealingKeys::from(key("old", 1));
        let clone = keys.clone();
        keys.replace(&SealingKeys::new(key("new", 2), vec![key("old", 1)]));
        assert_eq!(clone.current_prefix(), "new:");
    }

    #[test]
    fn two_keys_with_one_name_both_decrypt() {
        let of_second = key("k", 2).seal(b"whsec", "row-1", [9; 24]).unwrap();
        let keys = SealingKeys::new(key("k", 1), vec![key("k", 2)]);
        assert_eq!(open(&keys, &of_second, "row-1"), Ok(b"whsec".to_vec()));
    }

    #[test]
    fn unencrypted_text_does_not_decrypt() {
        let keys = SealingKeys::from(key("k", 1));
        for text in ["", "k", "k:", "k:AAAA", "k:!", "k:\u{e9}", ":AAAA"] {
            assert_eq!(open(&keys, text, "row-1"), Err(UnsealError), "{text}");
        }
    }
}
