//! The state of the limiter that a request used, and the response headers that report it.

use app::limits::UNAVAILABLE_RETRY_S;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use domain::Timestamp;
use domain::rate::{RateDecision, WINDOW_MS};

use super::Surface;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Name of the limiter by address.
pub(super) const ADDRESS: &str = "address";
/// Name of the limiter of a route and an address.
pub(super) const ROUTE: &str = "route";

/// The state of the limiter that a request used, after the request was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    name: &'static str,
    limit: u32,
    remaining: u32,
    reset_at: Timestamp,
}

impl RateLimitStatus {
    pub(super) fn new(name: &'static str, decision: RateDecision) -> Self {
        let RateDecision { limit, remaining, reset_at, .. } = decision;
        Self { name, limit, remaining, reset_at }
    }

    /// The state of an unreachable limiter: nothing remains until a retry makes sense.
    pub(super) fn unavailable(name: &'static str, limit: u32, now: Timestamp) -> Self {
        Self::exhausted(name, limit, now.plus_ms(i64::from(UNAVAILABLE_RETRY_S) * 1_000))
    }

    /// The state of a limiter that allows nothing until `reset_at`.
    pub(super) const fn exhausted(name: &'static str, limit: u32, reset_at: Timestamp) -> Self {
        Self { name, limit, remaining: 0, reset_at }
    }

    /// Writes the headers: the widespread `X-RateLimit-*`, and those of the IETF draft, with the
    /// seconds until the reset. Seconds are rounded up, so that a client that waits this long has
    /// waited long enough. The surfaces differ in the unit of `X-RateLimit-Reset`.
    pub(super) fn write(self, headers: &mut HeaderMap, surface: Surface, now: Timestamp) {
        let Self { name, limit, remaining, reset_at } = self;
        let seconds = |ms: i64| ms.max(0).unsigned_abs().div_ceil(1_000);
        headers.insert(LIMIT, HeaderValue::from(limit));
        headers.insert(REMAINING, HeaderValue::from(remaining));
        let reset = match surface {
            Surface::Trading => HeaderValue::from(seconds(reset_at.ms())),
            Surface::Public | Surface::Web => HeaderValue::from(reset_at.ms()),
        };
        headers.insert(RESET, reset);
        let window_s = WINDOW_MS / 1_000;
        let until_reset_s = seconds(reset_at.since_ms(now));
        // Every response has these two, so they are built without the slower `format!`.
        for (header, text) in [
            (
                RATE_LIMIT_POLICY,
                ["\"", name, "\";q=", &limit.to_string(), ";w=", &window_s.to_string()].concat(),
            ),
            (
                RATE_LIMIT,
                ["\"", name, "\";r=", &remaining.to_string(), ";t=", &until_reset_s.to_string()].concat(),
            ),
        ] {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(header, value);
            }
        }
    }
}
