//! The `Idempotency-Key` header.

use app::AppError;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use domain::ErrorCode;

use super::Problem;

const NAME: &str = "idempotency-key";
const MAX_LEN: usize = 255;

/// The request's idempotency key, where it carries one of the documented form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(pub Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(parse(&parts.headers).map_err(AppError::new)?))
    }
}

/// 1 to 255 characters of `A-Za-z0-9_-:.`, without the one pair of double quotes that may surround them.
fn parse(headers: &HeaderMap) -> Result<Option<String>, ErrorCode> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ErrorCode::IdempotencyKeyFormatInvalid);
    }
    let text = value.to_str().map_err(|_| ErrorCode::IdempotencyKeyFormatInvalid)?.trim();
    let key = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':' | b'.');
    match key {
        _ if key.len() > MAX_LEN => Err(ErrorCode::IdempotencyKeyTooLong),
        "" => Err(ErrorCode::IdempotencyKeyFormatInvalid),
        _ if !key.bytes().all(allowed) => Err(ErrorCode::IdempotencyKeyFormatInvalid),
        _ => Ok(Some(key.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn parsed(values: &[&str]) -> Result<Option<String>, ErrorCode> {
        let line = |value: &&str| {
            (HeaderName::from_static(NAME), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        parse(&values.iter().map(line).collect())
    }

    #[test]
    fn keys_of_the_documented_form_are_taken_and_one_pair_of_quotes_is_stripped() {
        assert_eq!(parsed(&[]), Ok(None));
        let longest = "x".repeat(255);
        for (sent, key) in [("a", "a"), ("\"a-B_9:.\"", "a-B_9:."), (longest.as_str(), longest.as_str())] {
            assert_eq!(parsed(&[sent]), Ok(Some(key.to_owned())), "{sent}");
        }
    }

    #[test]
    fn a_longer_key_is_too_long() {
        assert_eq!(parsed(&["x".repeat(256).as_str()]), Err(ErrorCode::IdempotencyKeyTooLong));
    }

    #[test]
    fn empty_repeated_and_other_keys_are_refused() {
        for values in
            [&[""][..], &["\"\""], &["\"\"a\"\""], &["\"a"], &["a b"], &["a,b"], &["é"], &["a", "a"]]
        {
            assert_eq!(parsed(values), Err(ErrorCode::IdempotencyKeyFormatInvalid), "{values:?}");
        }
    }
}
