//! Request ids, which identify requests in logs and support cases. The server generates them; no
//! part comes from the client.

use std::convert::Infallible;
use std::fmt;

use app::Ctx;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Serialize, Serializer};
use uuid::Uuid;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const PREFIX: &str = "req_";
const LENGTH: usize = PREFIX.len() + 32;

/// A request's id: `req_` and 32 hex digits, sent as `X-Request-Id`, `_meta.requestId` and a
/// problem's `requestId`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(Uuid);

impl RequestId {
    /// The id in the examples of documents.
    pub const EXAMPLE: Self = Self(Uuid::from_u128(0x0198_f3a0_5d4e_7c1b_9a2f_3b4c_5d6e_7f80));

    pub fn new(ctx: &Ctx) -> Self {
        Self(ctx.uuid())
    }

    /// Adds the `X-Request-Id` header.
    pub fn add_header(self, headers: &mut HeaderMap) {
        if let Ok(id) = HeaderValue::from_str(self.text(&mut [0; LENGTH])) {
            headers.insert(X_REQUEST_ID, id);
        }
    }

    /// Writes the id to `space` and returns it as text, without allocating.
    fn text(self, space: &mut [u8; LENGTH]) -> &str {
        let (prefix, digits) = space.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX.as_bytes());
        self.0.as_simple().encode_lower(digits);
        std::str::from_utf8(space).unwrap_or_default()
    }

    pub const fn of(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; LENGTH]))
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text(&mut [0; LENGTH]))
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        // `finish_response` wraps every route. A nil id in a response shows that it was left out.
        Ok(parts.extensions.get().copied().unwrap_or(Self(Uuid::nil())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_has_its_prefix_and_32_hex_digits() {
        assert_eq!(RequestId::of(Uuid::from_u128(0xab)).to_string(), "req_000000000000000000000000000000ab");
    }
}
