//! Which refusals a route can answer with, besides those that its annotation names.

use domain::ErrorCode;

use crate::http::RouteInfo;

/// Any route: the address's limiter, the version's pin, deadline and accidents.
const EVERY: &[ErrorCode] = &[
    ErrorCode::ValidationFailed,
    ErrorCode::ApiVersionUnsupported,
    ErrorCode::RateLimitExceeded,
    ErrorCode::HeadersTooLarge,
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
    ErrorCode::RateLimitUnavailable,
    ErrorCode::RouteDisabled,
    ErrorCode::DependencyUnavailable,
];

/// A route that asks for a scope.
const SCOPED: &[ErrorCode] = &[ErrorCode::InsufficientScope];

/// A route that reads a body.
const BODY: &[ErrorCode] = &[ErrorCode::PayloadTooLarge, ErrorCode::UnsupportedMediaType];

/// The codes that `route` shares with its kind.
pub fn of_kind(route: &RouteInfo, reads_body: bool) -> impl Iterator<Item = ErrorCode> {
    let keyed = if route.asks_for_key() { KEYED } else { &[] };
    let scoped = if route.scope.is_some() { SCOPED } else { &[] };
    let body = if reads_body { BODY } else { &[] };
    EVERY.iter().chain(keyed).chain(scoped).chain(body).copied()
}
