//! The secret that signs a key's deliveries.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};

use crate::SecretKey;

const PREFIX: &str = "whsec_";

/// A webhook secret. Its issued text is `whsec_` and the standard base64 of 32 random bytes.
///
/// The two kinds of signatures use it differently. `X-Service-Signature` uses the issued text as
/// the HMAC key, so that receivers do not have to decode base64. Standard Webhooks uses the 32
/// bytes, as its libraries do.
#[derive(Clone)]
pub struct WebhookSecret {
    text: SecretString,
    bytes: SecretKey,
}

impl WebhookSecret {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { text: format!("{PREFIX}{}", STANDARD.encode(bytes)).into(), bytes: bytes.into() }
    }

    /// Returns the issued text, for showing it to the key's owner.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// Returns the HMAC key of Standard Webhooks' signatures.
    pub(super) fn bytes(&self) -> &[u8; 32] {
        self.bytes.expose()
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret is whsec_ and the base64 of 32 bytes")]
pub struct ParseSecretError;

impl FromStr for WebhookSecret {
    type Err = ParseSecretError;

    /// Accepts only the issued form: padded canonical base64.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let base64 = text.strip_prefix(PREFIX).ok_or(ParseSecretError)?;
        let bytes = STANDARD.decode(base64).map_err(|_| ParseSecretError)?;
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| ParseSecretError)?;
        Ok(Self { text: text.into(), bytes: bytes.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn a_secret_round_trips_in_its_issued_form() {
        let secret = WebhookSecret::from_bytes(std::array::from_fn(|i| i as u8));
        assert_eq!(secret.expose(), TEXT);
        let read: WebhookSecret = TEXT.parse().unwrap();
        assert_eq!((read.expose(), read.bytes()), (TEXT, secret.bytes()));
    }

    #[test]
    fn debug_output_never_contains_the_secret() {
        let secret: WebhookSecret = TEXT.parse().unwrap();
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "WebhookSecret(..) Some(WebhookSecret(..))");
    }

    #[test]
    fn other_text_is_not_a_secret() {
        for text in [
            "",
            "whsec_",
            &TEXT[6..],
            &TEXT[..TEXT.len() - 1],
            &TEXT.replace("whsec_", "WHSEC_"),
            // Non-zero bits after the 32 bytes.
            &TEXT.replace("Hh8=", "Hh9="),
            // The URL-safe alphabet.
            &format!("whsec_{}=", "_".repeat(43)),
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g",
            " whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        ] {
            assert!(text.parse::<WebhookSecret>().is_err(), "{text}");
        }
    }
}
