//! Any web page may read this surface. It carries no credentials, so the answers name every origin at once.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;

/// What can be asked of every path.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
/// What a script may send besides what it always may.
const MAY_SEND: HeaderValue = HeaderValue::from_static(
    "Accept, Cache-Control, Content-Type, If-None-Match, Last-Event-ID, X-Requested-With",
);
/// The headers of answers that a script may see besides those that it always may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After",
);
/// For how long a browser may remember the answer: a day, of which each browser takes as much as it likes.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("86400");

/// Whether a browser asks if it may ask, or somebody what can be asked.
pub(super) fn is_question(request: &Request) -> bool {
    request.method() == Method::OPTIONS
}

/// The answer to that, the same for every path.
pub(super) fn answer() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    tell_methods(headers);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, MAY_SEND);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Says what a path can be asked with.
pub(super) fn tell_methods(headers: &mut HeaderMap) {
    headers.insert(ALLOW, METHODS);
}

/// Opens an answer to every page.
pub(super) fn open(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}
