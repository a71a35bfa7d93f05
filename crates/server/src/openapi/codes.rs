//! Which refusals a route can answer with, besides those that its annotation names.

use axum::http::Method;
use domain::ErrorCode;

use crate::http::RouteInfo;

/// Any route: the address's limiter, the version's pin, deadline and accidents.
const EVERY: &[ErrorCode] = &[
    ErrorCode::ValidationFailed,
    ErrorCode::ApiVersionUnsupported,
    ErrorCode::RateLimitExceeded,
    ErrorCode::InternalError,
    ErrorCode::RequestTimeout,
];

/// A route that asks for a key.
const KEYED: &[ErrorCode] = &[
    ErrorCode::ApiKeyMissing,
    ErrorCode::ApiKeyMalformed,
    ErrorCode::ApiKeyInvalid,
    ErrorCode::ApiKeyRevoked,
    ErrorCode::ApiKeyExpired,
    ErrorCode::IpNotAllowed,
    ErrorCode::RequestSignatureInvalid,
    ErrorCode::InsufficientScope,
    ErrorCode::RateLimitUnavailable,
    ErrorCode::RouteDisabled,
    ErrorCode::DependencyUnavailable,
];

/// A route that reads a body.
const BODY: &[ErrorCode] = &[ErrorCode::PayloadTooLarge, ErrorCode::UnsupportedMediaType];

/// The codes that `route` shares with its kind.
pub fn of_kind(route: &RouteInfo, reads_body: bool) -> impl Iterator<Item = ErrorCode> {
    let keyed = if route.scope.is_some() { KEYED } else { &[] };
    let body = if reads_body { BODY } else { &[] };
    EVERY.iter().chain(keyed).chain(body).copied()
}

/// Whether the route writes: a refusal of it says what became of the submission.
pub fn is_write(route: &RouteInfo) -> bool {
    route.method == Method::POST
}
