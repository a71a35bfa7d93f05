//! Responses of the interactive API references, which both HTTP surfaces share.

use axum::Extension;
use axum::body::Bytes;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use http_kit::StablePart;

/// Any site may read the OpenAPI document, and it is the same for all callers.
const SHARED: [(HeaderName, &str); 2] =
    [(ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (CACHE_CONTROL, "public, max-age=300")];
/// The reference loads nothing from other hosts. It sets styles by script and uses icons from data
/// URLs.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Returns an OpenAPI document as a response.
pub fn contract(document: &'static [u8]) -> Response {
    let bytes = Bytes::from_static(document);
    (SHARED, [(CONTENT_TYPE, "application/json")], Extension(StablePart::of(&bytes)), bytes).into_response()
}

/// Returns a page or an asset of the reference as a response.
pub fn asset(kind: &'static str, bytes: Bytes) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "no-referrer")];
    (StatusCode::OK, SHARED, headers, Extension(StablePart::of(&bytes)), bytes).into_response()
}
