//! What the interactive references of both surfaces are served with.

use axum::Extension;
use axum::body::Bytes;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::http::StablePart;

/// Anyone's page may read the contract; it is the same for everybody.
const SHARED: [(HeaderName, &str); 2] =
    [(ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (CACHE_CONTROL, "public, max-age=300")];
/// Nothing but this service is asked for anything. The reference sets styles by script and draws its icons from data.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// An OpenAPI document.
pub fn contract(document: &'static [u8]) -> Response {
    let bytes = Bytes::from_static(document);
    (SHARED, [(CONTENT_TYPE, "application/json")], Extension(StablePart::of(&bytes)), bytes).into_response()
}

/// A page of the reference, or a file of one.
pub fn asset(kind: &'static str, bytes: Bytes) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "no-referrer")];
    (StatusCode::OK, SHARED, headers, Extension(StablePart::of(&bytes)), bytes).into_response()
}
