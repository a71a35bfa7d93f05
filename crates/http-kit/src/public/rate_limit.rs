//! Rate limiting of the public API.
//!
//! Each route has one limiter per address. All other requests (documents, unknown paths, other
//! methods, preflights) share the address's limiter, which is local to this process.

use std::net::IpAddr;

use app::limits::{self, ADDRESS_LIMIT};
use axum::response::Response;
use domain::rate::Verdict;

use super::route::{Limiter, PublicRoute};
use super::{Code, Refusal};
use crate::Shared;
use crate::rate_limit_status::{ADDRESS, RateLimitStatus};

/// Name of the limiter of a route and an address.
const ROUTE: &str = "route";

/// Counts a request on the route's limiter. Sets `status` to the limiter's state, even on an
/// error.
pub(super) async fn draw(
    app: &Shared,
    route: &PublicRoute,
    ip: IpAddr,
    status: &mut Option<RateLimitStatus>,
) -> Result<(), Refusal> {
    let now = app.ctx.now();
    let (name, verdict) = match route.limiter {
        Limiter::Address => (ADDRESS, app.ctx.process.limits.take_address(ip, now)),
        Limiter::PerMinute(limit) => {
            // Reported if the limiter fails and the `?` below returns.
            *status = Some(RateLimitStatus::unavailable(ROUTE, limit, now));
            let verdict = app.ctx.process.limits.take_route(ip, route.path, limit, now).await;
            (ROUTE, verdict.map_err(app::AppError::from)?)
        }
    };
    *status = Some(RateLimitStatus::new(name, verdict));
    if verdict.allowed { Ok(()) } else { Err(exceeded(name, verdict)) }
}

/// Completes the accounting of a response: a request that used no limiter counts for its address.
/// If the address is over its limit, this replaces the response's error.
pub(super) fn settle(app: &Shared, ip: IpAddr, response: &mut Response) -> RateLimitStatus {
    if let Some(status) = response.extensions_mut().remove::<RateLimitStatus>() {
        return status;
    }
    let verdict = app.ctx.process.limits.take_address(ip, app.ctx.now());
    // The request was already handled, but its response is replaced.
    if !verdict.allowed {
        response.extensions_mut().insert(exceeded(ADDRESS, verdict));
    }
    RateLimitStatus::new(ADDRESS, verdict)
}

fn exceeded(name: &str, verdict: Verdict) -> Refusal {
    let what = if name == ROUTE { "This route allows" } else { "All other paths together allow" };
    let message = format!(
        "{what} {} requests per minute from one address. Wait for retryAfter seconds.",
        verdict.limit
    );
    let seconds = limits::retry_after_s(verdict.retry_after_ms);
    Refusal::new(Code::RateLimitExceeded).message(message).retry_after_s(seconds)
}

/// Requests per minute of the address's shared limiter, for documents.
pub const ADDRESS_PER_MINUTE: u32 = ADDRESS_LIMIT;
