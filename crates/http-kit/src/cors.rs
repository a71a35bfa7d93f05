//! CORS headers. Every web page may read the public API. It uses no credentials, so responses can
//! allow all origins.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;

/// Allowed methods, the same for every path.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
/// Request headers that scripts may send, besides the CORS-safelisted ones.
const MAY_SEND: HeaderValue = HeaderValue::from_static(
    "Accept, Cache-Control, Content-Type, If-None-Match, Last-Event-ID, X-Requested-With",
);
/// Response headers that scripts may read, besides the CORS-safelisted ones.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After",
);
/// Seconds for which a browser may cache a preflight response. Browsers cap it at their own
/// maximum.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("86400");

/// Returns whether the request is a preflight or another OPTIONS request.
pub(super) fn is_question(request: &Request) -> bool {
    request.method() == Method::OPTIONS
}

/// Returns the response to OPTIONS requests, the same for every path.
pub(super) fn answer() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    // OPTIONS is also used without CORS, so `Allow` is set too.
    headers.insert(ALLOW, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, MAY_SEND);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Allows every origin to read a response with this status.
pub(super) fn open(headers: &mut HeaderMap, status: StatusCode) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, METHODS);
    }
}
