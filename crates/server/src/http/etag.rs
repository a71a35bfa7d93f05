//! Conditional requests: every 200 to a GET whose body says what is stable in it carries a weak `ETag`, and is answered
//! 304 where the client holds that state already.
//!
//! The tag is made of the path, the query, the key's id and the body without `_meta`, which differs from answer to answer.
//! Writers of bodies leave the stable part as a [`StablePart`] on the response, so that nothing is parsed again.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use domain::entity_tag;
use domain::ids::KeyId;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// What of a body is the same as long as what it tells is the same, by its hash. A handler whose whole body is stable
/// answers `(Extension(StablePart::of(&body)), body)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StablePart(u128);

impl StablePart {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }
}

/// Whose answer it is: answers to different keys never share a tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner(pub KeyId);

/// What of a request decides about tags.
#[derive(Debug)]
pub(crate) struct Condition {
    reads: bool,
    uri: Uri,
    if_none_match: Vec<HeaderValue>,
}

impl Condition {
    /// That of `request`.
    pub fn of(request: &Request) -> Self {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let if_none_match = request.headers().get_all(IF_NONE_MATCH).iter().cloned().collect();
        Self { reads, uri: request.uri().clone(), if_none_match }
    }

    /// The path that was asked for.
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// Gives a finished 200 its tag, and turns it into a 304 where the request names it.
    pub fn answer(&self, response: &mut Response) {
        let stable = response.extensions_mut().remove::<StablePart>();
        let owner = response.extensions_mut().remove::<Owner>();
        let Some(stable) = stable.filter(|_| self.reads && response.status() == StatusCode::OK) else {
            return;
        };
        let tag = self.tag(owner, stable);
        let is_current = names(&self.if_none_match, &tag);
        // Hex digits in quotes are a header's value.
        if let Ok(value) = HeaderValue::try_from(["W/\"", &tag, "\""].concat()) {
            response.headers_mut().insert(ETAG, value);
        }
        if is_current {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            // Of no known length: a Content-Length would have to be that of the 200, which is not told here.
            *response.body_mut() = Body::from_stream(futures::stream::empty::<Result<Bytes, Infallible>>());
            response.headers_mut().remove(CONTENT_TYPE);
            response.headers_mut().remove(CONTENT_LENGTH);
        }
    }

    fn tag(&self, owner: Option<Owner>, StablePart(stable): StablePart) -> String {
        let mut hash = Xxh3::new();
        // Each part's length stands before it, so that no two lists of parts run into the same bytes.
        let owner = owner.map(|Owner(key)| *key.0.as_bytes()).unwrap_or_default();
        for part in [self.uri.path().as_bytes(), self.uri.query().unwrap_or_default().as_bytes(), &owner] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(&stable.to_le_bytes());
        alloy_primitives::hex::encode(hash.digest128().to_be_bytes())
    }
}

/// Whether `If-None-Match` names `tag`. A line that is no text makes it malformed, and that is no condition.
fn names(lines: &[HeaderValue], tag: &str) -> bool {
    let lines: Result<Vec<&str>, _> = lines.iter().map(HeaderValue::to_str).collect();
    lines.is_ok_and(|lines| entity_tag::names(&lines, tag))
}

/// Marks an answer as one to `key`.
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
    fn a_condition_that_is_no_text_is_ignored() {
        let tag = HeaderValue::from_static("W/\"abc\"");
        assert!(names(std::slice::from_ref(&tag), "abc"));
        assert!(!names(&[tag, HeaderValue::from_bytes(b"\xff").unwrap()], "abc"));
    }

    #[test]
    fn a_tag_is_of_path_query_key_and_stable_part_and_of_nothing_else() {
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
    fn only_a_200_to_a_read_has_a_tag() {
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
