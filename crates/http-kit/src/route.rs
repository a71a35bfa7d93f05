//! The properties of a route in the route table.

use app::limits::Kind;
use axum::http::header::LINK;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use domain::Timestamp;
use domain::key::Scope;

/// The limiter that a route's requests count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// The user's sliding window for reads.
    Read,
    /// The user's token bucket for writes.
    Write,
    /// The user's token bucket for redeliveries.
    Redelivery,
    /// The address's limiter, for routes without authentication.
    Infra,
}

impl Limiter {
    /// Returns the user's limiter, or `None` for the address's.
    pub const fn of_user(self) -> Option<Kind> {
        match self {
            Self::Read => Some(Kind::Read),
            Self::Write => Some(Kind::Write),
            Self::Redelivery => Some(Kind::Redelivery),
            Self::Infra => None,
        }
    }
}

/// A route, without its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    /// The method. A GET route also answers HEAD.
    pub method: Method,
    /// The path template.
    pub path: &'static str,
    /// The scope that the key must have. `None` if any key is accepted or no key is required.
    pub scope: Option<Scope>,
    pub limiter: Limiter,
    /// The default page size. `None` if the route is not paginated.
    pub page_default: Option<u32>,
    /// The planned removal of the route, if there is one.
    pub deprecation: Option<Deprecation>,
}

/// A planned removal. The date only appears in headers; the route is removed by a code change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation {
    /// Earliest time at which the route may be removed.
    pub sunset: Timestamp,
    /// URL of the page that describes the replacement.
    pub link: &'static str,
}

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

impl RouteInfo {
    /// Returns `METHOD path`, as operator commands name the route.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns whether the route writes. Errors of such routes report the state of the submission.
    pub fn is_write(&self) -> bool {
        self.method == Method::POST
    }

    /// Returns whether the route creates or confirms trades and is therefore disabled while trading
    /// is halted. Redemptions are not trades, so users can still claim payouts.
    pub fn trades(&self) -> bool {
        // Compare whole segments, so that e.g. `/v1/tradesmen` does not match.
        let behind = (self.method == Method::POST).then(|| self.path.strip_prefix("/v1/trades"));
        behind.flatten().is_some_and(|behind| behind.is_empty() || behind.starts_with('/'))
    }

    /// Adds the deprecation headers, if the route is deprecated.
    pub(super) fn tell_deprecation(&self, response: &mut Response) {
        let Some(Deprecation { sunset, link }) = self.deprecation else { return };
        let headers = response.headers_mut();
        headers.insert(DEPRECATION, HeaderValue::from_static("true"));
        let texts = [(SUNSET, sunset.http_date()), (LINK, format!("<{link}>; rel=\"deprecation\""))];
        for (name, text) in texts {
            // Cannot fail: the dates and URLs of the table are valid header values.
            if let Ok(value) = HeaderValue::from_str(&text) {
                // Append, because the handler may have set `Link` too.
                headers.append(name, value);
            }
        }
    }
}

impl RouteInfo {
    /// Returns whether the route requires a key. The limiter determines this, not the scope,
    /// because a user's limiter needs a user. A route that lacks a scope by mistake still requires
    /// a key.
    pub fn asks_for_key(&self) -> bool {
        self.limiter != Limiter::Infra
    }
}
