//! Error codes that routes share, besides those in their annotations.

use domain::ErrorCode;

use http_kit::Route;

/// Codes of every route.
const EVERY: &[ErrorCode] = &[
    ErrorCode::ValidationFailed,
    ErrorCode::ApiVersionUnsupported,
    ErrorCode::RateLimitExceeded,
    ErrorCode::HeadersTooLarge,
    ErrorCode::InternalError,
    ErrorCode::RequestTimeout,
];

/// Codes of routes that require a key.
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

/// Codes of routes that require a scope.
const SCOPED: &[ErrorCode] = &[ErrorCode::InsufficientScope];

/// Codes of routes that read a body.
const BODY: &[ErrorCode] = &[ErrorCode::PayloadTooLarge, ErrorCode::UnsupportedMediaType];

/// Returns the codes that `route` shares with similar routes.
pub fn of_kind(route: &Route, reads_body: bool) -> impl Iterator<Item = ErrorCode> {
    let keyed = if route.asks_for_key() { KEYED } else { &[] };
    let scoped = if route.scope.is_some() { SCOPED } else { &[] };
    let body = if reads_body { BODY } else { &[] };
    EVERY.iter().chain(keyed).chain(scoped).chain(body).copied()
}
