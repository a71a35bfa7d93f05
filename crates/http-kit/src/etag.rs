//! Conditional requests. Every 200 response to a GET whose body declares a stable part has a weak
//! `ETag`. If the client already has that state, it gets a 304 instead.
//!
//! The tag is a hash of the path, the query, the key's id and the body without `_meta`, which
//! differs in each response. Code that writes a body attaches a [`StablePart`] to the response, so
//! that no body is parsed again.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use domain::ids::KeyId;
use protocol::entity_tag;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Hash of the part of a body that only changes if the resource does. If a whole body is stable, a
/// handler returns `(Extension(StablePart::of(&body)), body)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StablePart(u128);

impl StablePart {
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }
}

/// The API key that a response belongs to. Responses to different keys never share a tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner(pub KeyId);

/// The parts of a request that determine the tag and the condition.
#[derive(Debug)]
pub struct Condition {
    reads: bool,
    uri: Uri,
    if_none_match: Vec<HeaderValue>,
}

impl Condition {
    /// Extracts the condition of `request`.
    pub fn of(request: &Request) -> Self {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let if_none_match = request.headers().get_all(IF_NONE_MATCH).iter().cloned().collect();
        Self { reads, uri: request.uri().clone(), if_none_match }
    }

    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// Adds the `ETag` to a finished 200 response, and turns it into a 304 if the request's
    /// `If-None-Match` contains the tag.
    pub fn answer(&self, response: &mut Response) {
        let stable = response.extensions_mut().remove::<StablePart>();
        let owner = response.extensions_mut().remove::<Owner>();
        let Some(stable) = stable.filter(|_| self.reads && response.status() == StatusCode::OK) else {
            return;
        };
        // The tag is weak, because `_meta` differs between responses with the same tag.
        let tag = self.tag(owner, stable);
        let is_current = names(&self.if_none_match, &tag);
        // Cannot fail: hex digits in quotes are a valid header value.
        if let Ok(value) = HeaderValue::try_from(["W/\"", &tag, "\""].concat()) {
            response.headers_mut().insert(ETAG, value);
        }
        if is_current {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            // A body of unknown length. With a known one, the server would send a Content-Length of
            // 0, but in a 304 that header must be the length of the 200 (RFC 9110).
            *response.body_mut() = Body::from_stream(futures::stream::empty::<Result<Bytes, Infallible>>());
            response.headers_mut().remove(CONTENT_TYPE);
            response.headers_mut().remove(CONTENT_LENGTH);
        }
    }

    fn tag(&self, owner: Option<Owner>, StablePart(stable): StablePart) -> String {
        let mut hash = Xxh3::new();
        // Prefix each part with its length, so that different parts never concatenate to the same
        // bytes.
        let owner = owner.map(|Owner(key)| *key.0.as_bytes()).unwrap_or_default();
        for part in [self.uri.path().as_bytes(), self.uri.query().unwrap_or_default().as_bytes(), &owner] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(&stable.to_le_bytes());
        alloy_primitives::hex::encode(hash.digest128().to_be_bytes())
    }
}

/// Returns whether `If-None-Match` contains `tag`. A line that is not text makes the header
/// malformed, and a malformed header is ignored.
fn names(lines: &[HeaderValue], tag: &str) -> bool {
    let lines: Result<Vec<&str>, _> = lines.iter().map(HeaderValue::to_str).collect();
    lines.is_ok_and(|lines| entity_tag::names(&lines, tag))
}

/// Marks a response as belonging to `key`.
pub(super) fn set_owner(response: &mut Response, key: Option<KeyId>) {
    if let Some(key) = key {
        response.extensions_mut().insert(Owner(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use uuid::Uuid;

    #[test]
    fn a_condition_that_is_not_text_is_ignored() {
        let tag = HeaderValue::from_static("W/\"abc\"");
        assert!(names(std::slice::from_ref(&tag), "abc"));
        assert!(!names(&[tag, HeaderValue::from_bytes(b"\xff").unwrap()], "abc"));
    }

    #[test]
    fn an_etag_depends_only_on_path_query_key_and_stable_part() {
        let tag = |uri: &str, key: Option<u128>, stable: &str| {
            let condition = Condition { reads: true, uri: uri.parse().unwrap(), if_none_match: Vec::new() };
            condition
                .tag(key.map(|key| Owner(KeyId(Uuid::from_u128(key)))), StablePart::of(stable.as_bytes()))
        };
        let base = tag("/a?b=1", Some(1), "x");
        assert_eq!(base, tag("/a?b=1", Some(1), "x"));
        assert_eq!(base.len(), 32);
        for other in [
            tag("/a?b=2", Some(1), "x"),
            tag("/a", Some(1), "x"),
            tag("/ab?=1", Some(1), "x"),
            tag("/a?b=1", Some(2), "x"),
            tag("/a?b=1", None, "x"),
            tag("/a?b=1", Some(1), "y"),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn only_a_200_to_a_read_has_an_etag() {
        let answered = |method: Method, status: StatusCode| {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            let mut response = (status, axum::Extension(StablePart::of(b"x")), "x").into_response();
            Condition::of(&request).answer(&mut response);
            response.headers().contains_key(ETAG)
        };
        assert!(answered(Method::GET, StatusCode::OK));
        assert!(answered(Method::HEAD, StatusCode::OK));
        assert!(!answered(Method::POST, StatusCode::OK));
        assert!(!answered(Method::GET, StatusCode::NOT_FOUND));
        assert!(!answered(Method::GET, StatusCode::CREATED));
    }
}
