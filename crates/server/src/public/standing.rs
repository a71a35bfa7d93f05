//! The limiters around the routes, and the headers with which every answer says where its limiter stands.
//!
//! A route has one limiter for each address. What belongs to no such route (documents, unknown paths, other methods,
//! preflights) draws on the address's own limiter, which is the process's.

use std::net::IpAddr;

use app::limits::{self, ADDRESS_LIMIT, UNAVAILABLE_RETRY_S};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use domain::Timestamp;
use domain::rate::{Verdict, WINDOW_MS};

use super::route::{Limiter, PublicRoute};
use super::{Code, Refusal};
use crate::http::Shared;

pub(super) const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(super) const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
pub(super) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The names of the two kinds of limiters.
const ROUTE: &str = "route";
const ADDRESS: &str = "address";

/// Where the limiter that a request drew on stands after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    name: &'static str,
    limit: u32,
    remaining: u32,
    reset_at: Timestamp,
}

/// Draws on the limiter that the route names. Leaves in `standing` where it stands, whatever comes of it.
pub(super) async fn draw(
    app: &Shared,
    route: &PublicRoute,
    ip: IpAddr,
    standing: &mut Option<Standing>,
) -> Result<(), Refusal> {
    let now = app.ctx.now();
    let (name, verdict) = match route.limiter {
        Limiter::Address => (ADDRESS, app.ctx.limits.take_address(ip, now)),
        Limiter::PerMinute(limit) => {
            // Where the limiter does not answer, this stands.
            let reset_at = now.plus_ms(i64::from(UNAVAILABLE_RETRY_S) * 1_000);
            *standing = Some(Standing { name: ROUTE, limit, remaining: 0, reset_at });
            let verdict = app.ctx.limits.take_route(ip, route.path, limit, now).await;
            (ROUTE, verdict.map_err(app::AppError::from)?)
        }
    };
    *standing = Some(Standing::of(name, verdict));
    if verdict.allowed { Ok(()) } else { Err(exceeded(name, verdict)) }
}

/// On the way out: what drew on no limiter draws on the address's, which may put its refusal in the place of another.
pub(super) fn settle(app: &Shared, ip: IpAddr, response: &mut Response) -> Standing {
    if let Some(standing) = response.extensions_mut().remove::<Standing>() {
        return standing;
    }
    let verdict = app.ctx.limits.take_address(ip, app.ctx.now());
    if !verdict.allowed {
        response.extensions_mut().insert(exceeded(ADDRESS, verdict));
    }
    Standing::of(ADDRESS, verdict)
}

fn exceeded(name: &str, verdict: Verdict) -> Refusal {
    let what = if name == ROUTE { "This route takes" } else { "Requests outside of the routes with data:" };
    let message = format!(
        "{what} {} requests a minute from one address. Wait as long as retryAfter says.",
        verdict.limit
    );
    let seconds = limits::retry_after_s(verdict.retry_after_ms);
    Refusal::new(Code::RateLimitExceeded).message(message).retry_after_s(seconds)
}

impl Standing {
    fn of(name: &'static str, verdict: Verdict) -> Self {
        let Verdict { limit, remaining, reset_at, .. } = verdict;
        Self { name, limit, remaining, reset_at }
    }

    /// The headers: those that are widespread, with the reset as the epoch's milliseconds, and those of the IETF's draft,
    /// with the seconds until then, rounded up.
    pub(super) fn write(self, headers: &mut HeaderMap, now: Timestamp) {
        let Self { name, limit, remaining, reset_at } = self;
        headers.insert(LIMIT, HeaderValue::from(limit));
        headers.insert(REMAINING, HeaderValue::from(remaining));
        headers.insert(RESET, HeaderValue::from(reset_at.ms()));
        let (window_s, until_reset_s) =
            (WINDOW_MS / 1_000, reset_at.since_ms(now).max(0).unsigned_abs().div_ceil(1_000));
        for (header, text) in [
            (RATE_LIMIT_POLICY, format!("\"{name}\";q={limit};w={window_s}")),
            (RATE_LIMIT, format!("\"{name}\";r={remaining};t={until_reset_s}")),
        ] {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(header, value);
            }
        }
    }
}

/// The most requests a minute of the address's own limiter, for documents.
pub const ADDRESS_PER_MINUTE: u32 = ADDRESS_LIMIT;
