//! The secret that signs the deliveries of one key.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const PREFIX: &str = "whsec_";

/// A webhook secret. Its text, as it is issued, is `whsec_` and the standard base64 of 32 random bytes.
///
/// Two signatures are made of it. `X-Service-Signature` takes the text as issued for its key, so that a receiver needs to know
/// nothing of base64; Standard Webhooks takes the 32 bytes, as its libraries do.
#[derive(Clone)]
pub struct WebhookSecret {
    text: String,
    bytes: [u8; 32],
}

impl WebhookSecret {
    /// The secret of these random bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { text: format!("{PREFIX}{}", STANDARD.encode(bytes)), bytes }
    }

    /// The secret as it is issued, for the one who may see it.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The key of Standard Webhooks' signatures.
    pub(super) const fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// The text is no webhook secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret is whsec_ and the base64 of 32 bytes")]
pub struct ParseSecretError;

impl FromStr for WebhookSecret {
    type Err = ParseSecretError;

    /// Accepts what is issued alone: padded, and without a second way to write the same bytes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let base64 = text.strip_prefix(PREFIX).ok_or(ParseSecretError)?;
        let bytes = STANDARD.decode(base64).map_err(|_| ParseSecretError)?;
        Ok(Self { text: text.to_owned(), bytes: bytes.try_into().map_err(|_| ParseSecretError)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn a_secret_is_written_as_it_is_issued_and_read_back() {
        let secret = WebhookSecret::from_bytes(std::array::from_fn(|i| i as u8));
        assert_eq!(secret.expose(), TEXT);
        let read: WebhookSecret = TEXT.parse().unwrap();
        assert_eq!((read.expose(), read.bytes()), (TEXT, secret.bytes()));
    }

    #[test]
    fn a_secret_shows_nothing_of_itself() {
        let secret: WebhookSecret = TEXT.parse().unwrap();
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "WebhookSecret(..) Some(WebhookSecret(..))");
    }

    #[test]
    fn text_of_another_form_is_no_secret() {
        for text in [
            "",
            "whsec_",
            &TEXT[6..],
            &TEXT[..TEXT.len() - 1],
            &TEXT.replace("whsec_", "WHSEC_"),
            // Bits behind the 32 bytes.
            &TEXT.replace("Hh8=", "Hh9="),
            // The alphabet of URLs.
            &format!("whsec_{}=", "_".repeat(43)),
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g",
            " whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        ] {
            assert!(text.parse::<WebhookSecret>().is_err(), "{text}");
        }
    }
}
