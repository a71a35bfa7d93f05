//! The limiters at their places around a handler, and the headers with which every answer says where its limiter stands.
//!
//! What a caller sends draws on the caller's user; everything else (routes without a key, unknown paths and methods,
//! refused keys) on the address that it came from. A good key is never held up by its address.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use app::AppError;
use app::keys::{Caller, is_failed_authentication};
use app::limits::{self, ADDRESS_LIMIT, UNAVAILABLE_RETRY_S};
use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use domain::rate::{Verdict, WINDOW_MS};
use domain::{ErrorCode, Timestamp};

use super::client_ip::warn_of_untrusted;
use super::problem::Problem;
use super::{RouteInfo, Shared, client_ip};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The name of the limiter by address.
const ADDRESS: &str = "address";

/// Where the limiter that a request drew on stands after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    name: &'static str,
    limit: u32,
    remaining: u32,
    reset_at: Timestamp,
}

/// The client's address, as the surrounding layer leaves it in the request.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let marked = parts.extensions.get::<Self>().copied();
        Ok(marked.unwrap_or(Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
    }
}

/// Finds out whose request it is and leaves it there for [`address_of`].
pub fn mark_address(app: &Shared, request: &mut Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    // Without a socket the address is none that an allowlist names.
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    warn_of_untrusted(peer, request.headers(), &app.trusted_proxies);
    let ip = client_ip(peer, request.headers(), &app.trusted_proxies);
    request.extensions_mut().insert(ClientAddress(ip));
    ip
}

/// The client's address.
pub fn address_of(request: &Request) -> IpAddr {
    request.extensions().get::<ClientAddress>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.0)
}

/// Draws on the address's limiter.
pub fn by_address(app: &Shared, request: &Request, standing: &mut Option<Standing>) -> Result<(), AppError> {
    let verdict = app.ctx.limits.take_address(address_of(request), app.ctx.now());
    *standing = Some(Standing::of(ADDRESS, verdict));
    if verdict.allowed { Ok(()) } else { Err(limits::exceeded(ADDRESS, verdict)) }
}

/// Draws on the limiter of the caller's user that the route names.
pub async fn by_user(
    app: &Shared,
    route: &RouteInfo,
    caller: &Caller,
    standing: &mut Option<Standing>,
) -> Result<(), AppError> {
    let Some(kind) = route.limiter.of_user() else { return Ok(()) };
    let (limit, now) = (caller.limits().requests_per_minute, app.ctx.now());
    // Where the limiter does not answer, this stands.
    *standing = Some(Standing::unavailable(kind.as_str(), limit, now));
    let verdict = app.ctx.limits.take(kind, caller.user_id(), limit, now).await?;
    *standing = Some(Standing::of(kind.as_str(), verdict));
    if verdict.allowed { Ok(()) } else { Err(limits::exceeded(kind.as_str(), verdict)) }
}

/// Draws on the limiter of an address whose request could not be read.
pub fn draw(app: &Shared, ip: IpAddr, now: Timestamp) -> Standing {
    Standing::of(ADDRESS, app.ctx.limits.take_address(ip, now))
}

/// On the way out: counts a failed authentication, and for the address whatever drew on no limiter before. Either may put
/// another refusal in the place of the one in `response`.
pub async fn settle(app: &Shared, ip: IpAddr, now: Timestamp, response: &mut Response) -> Standing {
    let failed = response.extensions().get::<Problem>().is_some_and(|it| is_failed_authentication(it.code()));
    if failed && let Err(unavailable) = app.ctx.limits.fail(ip, now).await {
        // A failure that cannot be counted is not told.
        replace(response, unavailable.into());
    }
    if let Some(standing) = response.extensions_mut().remove::<Standing>() {
        return standing;
    }
    let problem = response.extensions().get::<Problem>();
    match problem.map(|problem| (problem.code(), problem.retry_after_s())) {
        Some((ErrorCode::RateLimitUnavailable, _)) => Standing::unavailable(ADDRESS, ADDRESS_LIMIT, now),
        Some((code, retry_after_s)) if code.status() < 500 => {
            let verdict = app.ctx.limits.take_address(ip, now);
            if code == ErrorCode::RateLimitExceeded {
                return Standing::until(now.plus_ms(i64::from(retry_after_s.unwrap_or_default()) * 1_000));
            }
            if !verdict.allowed {
                replace(response, limits::exceeded(ADDRESS, verdict));
            }
            Standing::of(ADDRESS, verdict)
        }
        // Neither this service's own faults nor what is served beside the API count for anybody.
        _ => Standing::of(ADDRESS, app.ctx.limits.peek_address(ip, now)),
    }
}

fn replace(response: &mut Response, error: AppError) {
    if let Some(problem) = response.extensions_mut().get_mut::<Problem>() {
        *problem = problem.replaced_by(error);
    }
}

impl Standing {
    fn of(name: &'static str, verdict: Verdict) -> Self {
        let Verdict { limit, remaining, reset_at, .. } = verdict;
        Self { name, limit, remaining, reset_at }
    }

    /// Of a limiter that did not answer: nothing is left until the next try makes sense.
    fn unavailable(name: &'static str, limit: u32, now: Timestamp) -> Self {
        let reset_at = now.plus_ms(i64::from(UNAVAILABLE_RETRY_S) * 1_000);
        Self { name, limit, remaining: 0, reset_at }
    }

    /// Of an address that is shut out until then.
    const fn until(reset_at: Timestamp) -> Self {
        Self { name: ADDRESS, limit: ADDRESS_LIMIT, remaining: 0, reset_at }
    }

    /// The headers: those that are widespread, with the reset as the epoch's seconds, and those of the IETF's draft, with
    /// the seconds until then. Both are rounded up, so that whoever waits as long has waited long enough.
    pub fn write(self, headers: &mut HeaderMap, now: Timestamp) {
        let Self { name, limit, remaining, reset_at } = self;
        let seconds = |ms: i64| ms.max(0).unsigned_abs().div_ceil(1_000);
        headers.insert(LIMIT, HeaderValue::from(limit));
        headers.insert(REMAINING, HeaderValue::from(remaining));
        headers.insert(RESET, HeaderValue::from(seconds(reset_at.ms())));
        let window_s = WINDOW_MS / 1_000;
        let until_reset_s = seconds(reset_at.since_ms(now));
        // Every answer has these two: put together without the machinery of formatting.
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
