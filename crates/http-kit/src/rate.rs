//! Rate limiting of requests.
//!
//! Authenticated requests count for the caller's user. All others count for the client's address:
//! routes without a key, unknown paths and methods, preflights, and rejected keys. A route may have
//! its own limit per address. The limit of an address never blocks a valid key, but its lockout after
//! failed authentications may.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use app::caller::Caller;
use app::keys::is_failed_authentication;
use app::limits::budget::Budget;
use app::limits::{self, AddressDecision, FailureKind, LimitKind};
use app::{AppError, Submission};
use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::{IntoResponseParts, Response, ResponseParts};
use domain::key::Tier;
use domain::rate::RateDecision;
use domain::{ErrorCode, Timestamp};

use super::client_ip::warn_of_untrusted;
use super::problem::Problem;
use super::query::is_sent;
use super::rate_limit_status::{ADDRESS, ROUTE, RateLimitStatus};
use super::{Limiter, Route, Shared, Surface, client_ip};

/// The client's address, which [`mark_address`] stores in the request.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let marked = parts.extensions.get::<Self>().copied();
        Ok(marked.unwrap_or(Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
    }
}

/// Determines the client's address and stores it in the request for [`address_of`].
pub fn mark_address(app: &Shared, request: &mut Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    // No socket (tests): use 0.0.0.0, which no allowlist contains.
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let proxies = app.trusted_proxies.networks();
    warn_of_untrusted(peer, request.headers(), &proxies);
    let ip = client_ip(peer, request.headers(), &proxies);
    request.extensions_mut().insert(ClientAddress(ip));
    ip
}

pub fn address_of(request: &Request) -> IpAddr {
    request.extensions().get::<ClientAddress>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.0)
}

/// Counts a request on the route's own limiter or the address's. Sets `status` to the limiter's
/// state, even on an error.
pub async fn by_address(
    app: &Shared,
    route: &Route,
    ip: IpAddr,
    status: &mut Option<RateLimitStatus>,
) -> Result<(), AppError> {
    let (limits, now) = (&app.ctx.process.limits, app.ctx.now());
    let (name, AddressDecision { rate, refused }) = if let Limiter::PerMinute(limit) = route.limiter {
        // Reported if the limiter fails and the `?` below returns.
        *status = Some(RateLimitStatus::unavailable(ROUTE, limit, now));
        (ROUTE, limits.take_route(ip, route.path, limit, now).await?)
    } else {
        (ADDRESS, limits.take_address(ip, now))
    };
    *status = Some(RateLimitStatus::new(name, rate));
    match refused {
        Some(refused) => Err(refused.into()),
        None if rate.allowed => Ok(()),
        None => Err(exceeded(route.surface, name, rate)),
    }
}

/// Counts a request on one of the user's limiters. Sets `status` to the limiter's state, even on an
/// error.
pub async fn by_user(
    app: &Shared,
    kind: LimitKind,
    caller: &Caller,
    status: &mut Option<RateLimitStatus>,
) -> Result<(), AppError> {
    let (limit, now) = (caller.limits().requests_per_minute, app.ctx.now());
    // Reported if the limiter fails and the `?` below returns.
    *status = Some(RateLimitStatus::unavailable(kind.as_str(), limit, now));
    let decision = app.ctx.process.limits.take(kind, caller.user_id(), limit, now).await?;
    *status = Some(RateLimitStatus::new(kind.as_str(), decision));
    if decision.allowed { Ok(()) } else { Err(limits::exceeded(kind.as_str(), decision)) }
}

/// Counts a request of a user of the tier `free` for its network: accounts cost nothing, so a limit
/// per user alone limits nobody who has many.
pub fn by_network_of_user(app: &Shared, ip: IpAddr, caller: &Caller) -> Result<(), AppError> {
    if caller.key.tier != Tier::Free {
        return Ok(());
    }
    let client = (ip, caller.user_id());
    Ok(app.ctx.budgets().spend_here(Budget::FreeRequests, client, app.ctx.now())?)
}

/// The parameter of every list that searches by words.
const SEARCH_PARAMETER: &str = "q";

/// Counts a request that searches by words. A search costs more than other reads.
pub fn by_search(app: &Shared, uri: &Uri, ip: IpAddr) -> Result<(), AppError> {
    if !is_sent(uri.query().unwrap_or_default(), SEARCH_PARAMETER) {
        return Ok(());
    }
    Ok(app.ctx.budgets().spend_here(Budget::Searches, ip, app.ctx.now())?)
}

/// The tokens that the further parts of a request got from its limiter.
#[derive(Debug)]
pub struct Drawn {
    /// The number of parts that got a token.
    pub parts: usize,
    /// The error of the other parts.
    pub refusal: Option<Problem>,
    /// The limiter's state after the last part, for the response's headers.
    status: Option<RateLimitStatus>,
}

/// Counts up to `parts` further parts of a request like requests of their own, beyond the one that the
/// guard has counted. Stops at the first part that is refused, so that no later part overtakes an
/// earlier one.
pub async fn draw_further(app: &Shared, kind: LimitKind, caller: &Caller, parts: usize) -> Drawn {
    let mut drawn = Drawn { parts: 0, refusal: None, status: None };
    while drawn.parts < parts {
        let counted = by_user(app, kind, caller, &mut drawn.status).await;
        if let Err(error) = counted.and_then(|()| by_network_of_user(app, caller.ip(), caller)) {
            drawn.refusal = Some(Problem::from(error).or_submission(Submission::NotSubmitted));
            break;
        }
        drawn.parts += 1;
    }
    drawn
}

/// Reports the limiter's state in the response, instead of the state that the guard found.
impl IntoResponseParts for Drawn {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        if let Some(status) = self.status {
            response.extensions_mut().insert(status);
        }
        Ok(response)
    }
}

/// Returns the error of an address that has exceeded a limit.
fn exceeded(surface: Surface, name: &str, decision: RateDecision) -> AppError {
    let error = limits::exceeded(name, decision);
    match surface {
        Surface::Trading => error,
        Surface::Public | Surface::Web => {
            let what = if name == ROUTE { "This route allows" } else { "All other paths together allow" };
            error.detail(format!(
                "{what} {} requests per minute from one address. Wait for retryAfter seconds.",
                decision.limit
            ))
        }
    }
}

/// Counts an unreadable request on its address's limiter.
pub fn draw(app: &Shared, ip: IpAddr, now: Timestamp) -> RateLimitStatus {
    RateLimitStatus::new(ADDRESS, app.ctx.process.limits.take_address(ip, now).rate)
}

/// Completes the accounting of a response. Counts a failed authentication, and counts requests for
/// their address that have used no limiter yet. Either may replace the problem in `response`.
pub async fn settle(
    app: &Shared,
    surface: Surface,
    ip: IpAddr,
    now: Timestamp,
    response: &mut Response,
) -> RateLimitStatus {
    let failed = response.extensions().get::<Problem>().is_some_and(|it| is_failed_authentication(it.code()));
    if failed && let Err(unavailable) = app.ctx.process.limits.fail(FailureKind::ApiKey, ip, now).await {
        // If the failure cannot be counted, it must not be reported either: otherwise an attacker
        // could test keys without ever being locked out.
        replace(response, unavailable.into());
    }
    if let Some(status) = response.extensions_mut().remove::<RateLimitStatus>() {
        return status;
    }
    let address_limit = app.ctx.process.limits.address_limit();
    let problem = response.extensions().get::<Problem>();
    let counts = match problem.map(|problem| (problem.code(), problem.retry_after_s())) {
        Some((ErrorCode::RateLimitUnavailable, _)) => {
            return RateLimitStatus::unavailable(ADDRESS, address_limit, now);
        }
        // The address is locked out: report the end of the lockout.
        Some((ErrorCode::RateLimitExceeded, retry_after_s)) => {
            app.ctx.process.limits.take_address(ip, now);
            let until = now.plus_ms(i64::from(retry_after_s.unwrap_or_default()) * 1_000);
            return RateLimitStatus::exhausted(ADDRESS, address_limit, until);
        }
        // Server errors do not count for the client.
        Some((code, _)) => code.status() < 500,
        // Preflights count, routes beside the trading API do not.
        None => surface != Surface::Trading,
    };
    if !counts {
        return RateLimitStatus::new(ADDRESS, app.ctx.process.limits.peek_address(ip, now));
    }
    let AddressDecision { rate, refused } = app.ctx.process.limits.take_address(ip, now);
    match refused {
        Some(refused) => replace(response, refused.into()),
        None if rate.allowed => {}
        None => replace(response, exceeded(surface, ADDRESS, rate)),
    }
    RateLimitStatus::new(ADDRESS, rate)
}

/// Replaces the error in `response`, or the whole response if it has none.
fn replace(response: &mut Response, error: AppError) {
    let problem = match response.extensions().get::<Problem>() {
        Some(problem) => problem.replaced_by(error),
        None => error.into(),
    };
    response.extensions_mut().insert(problem);
}
