//! The `Idempotency-Key` header.

use app::AppError;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use domain::ErrorCode;

use super::Problem;

const NAME: &str = "idempotency-key";

/// The request's idempotency key, or `None` if the header is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(pub Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(read(&parts.headers).map_err(AppError::new)?))
    }
}

/// Parses the header. It may be sent at most once.
fn read(headers: &HeaderMap) -> Result<Option<String>, ErrorCode> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // Two keys are ambiguous, and using the wrong one could duplicate a trade.
    if values.next().is_some() {
        return Err(ErrorCode::IdempotencyKeyFormatInvalid);
    }
    let text = value.to_str().map_err(|_| ErrorCode::IdempotencyKeyFormatInvalid)?;
    text.parse().map(|key: protocol::IdempotencyKey| Some(key.into_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn of(values: &[&[u8]]) -> Result<Option<String>, ErrorCode> {
        let value = |bytes: &&[u8]| HeaderValue::from_bytes(bytes).unwrap();
        let lines = values.iter().map(|bytes| (HeaderName::from_static(NAME), value(bytes)));
        read(&lines.collect())
    }

    #[test]
    fn at_most_one_readable_header_is_accepted() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[b"a"]), Ok(Some("a".to_owned())));
        for values in [&[b"a".as_slice(), b"a"][..], &[b"\xff"]] {
            assert_eq!(of(values), Err(ErrorCode::IdempotencyKeyFormatInvalid), "{values:?}");
        }
    }
}
