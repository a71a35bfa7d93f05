//! Idempotency keys: a client's name for one request, under which it can retry safely.

use std::str::FromStr;

use domain::ErrorCode;

/// 1 to 255 characters of `A-Za-z0-9_-:.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

const MAX_LEN: usize = 255;

impl IdempotencyKey {
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Parses a header value. One surrounding pair of double quotes is not part of the key.
impl FromStr for IdempotencyKey {
    type Err = ErrorCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let key = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':' | b'.');
        // The length comes first: an overlong key gets its own code, whatever its characters.
        match key {
            _ if key.len() > MAX_LEN => Err(ErrorCode::IdempotencyKeyTooLong),
            "" => Err(ErrorCode::IdempotencyKeyFormatInvalid),
            _ if !key.bytes().all(allowed) => Err(ErrorCode::IdempotencyKeyFormatInvalid),
            _ => Ok(Self(key.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, ErrorCode> {
        text.parse().map(IdempotencyKey::into_string)
    }

    #[test]
    fn valid_keys_are_accepted_without_their_quotes() {
        let longest = "x".repeat(255);
        for (sent, key) in [("a", "a"), ("\"a-B_9:.\"", "a-B_9:."), (longest.as_str(), longest.as_str())] {
            assert_eq!(parsed(sent), Ok(key.to_owned()), "{sent}");
        }
    }

    #[test]
    fn a_key_above_the_maximum_length_is_too_long() {
        assert_eq!(parsed(&"x".repeat(256)), Err(ErrorCode::IdempotencyKeyTooLong));
    }

    #[test]
    fn empty_and_malformed_keys_are_rejected() {
        for text in ["", "\"\"", "\"\"a\"\"", "\"a", "a b", "a,b", "é"] {
            assert_eq!(parsed(text), Err(ErrorCode::IdempotencyKeyFormatInvalid), "{text}");
        }
    }
}
