//! The properties of a route.

use app::limits::LimitKind;
use axum::http::header::LINK;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use domain::Timestamp;
use domain::key::Scope;

use super::Surface;

/// The limiter that a route's requests count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// One of the user's limiters. The route requires a key, because only a key identifies the
    /// user.
    User(LimitKind),
    /// The address's shared limiter.
    Address,
    /// The route's own limiter: a number of requests per minute and address.
    PerMinute(u32),
}

/// The page sizes of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Page size if `limit` is not sent.
    pub default: u32,
    /// Maximum page size.
    pub most: u32,
}

/// A planned removal. The date only appears in headers; the route is removed by a code change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation {
    /// Earliest time at which the route may be removed.
    pub sunset: Timestamp,
    /// URL of the page that describes the replacement.
    pub link: &'static str,
}

/// A route, without its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub surface: Surface,
    /// The method. A GET route also answers HEAD.
    pub method: Method,
    /// The path template.
    pub path: &'static str,
    pub limiter: Limiter,
    /// The scope that the key must have. `None` if any key is accepted or no key is required.
    pub scope: Option<Scope>,
    /// The page sizes. `None` if the route is not paginated.
    pub page: Option<PageSize>,
    /// The planned removal of the route, if there is one.
    pub deprecation: Option<Deprecation>,
    /// The operator can disable the route, although it has neither a scope nor an own limit.
    pub has_switch: bool,
}

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

impl Route {
    pub const fn new(surface: Surface, method: Method, path: &'static str, limiter: Limiter) -> Self {
        Self { surface, method, path, limiter, scope: None, page: None, deprecation: None, has_switch: false }
    }

    /// Requires a key with this scope.
    #[must_use]
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Sets the page sizes of a list.
    #[must_use]
    pub const fn page(mut self, default: u32, most: u32) -> Self {
        self.page = Some(PageSize { default, most });
        self
    }

    /// Lets the operator disable the route, or not.
    #[must_use]
    pub const fn switchable(mut self, has_switch: bool) -> Self {
        self.has_switch = has_switch;
        self
    }

    /// Announces the removal of the route.
    #[must_use]
    pub const fn deprecated(mut self, deprecation: Deprecation) -> Self {
        self.deprecation = Some(deprecation);
        self
    }

    /// Returns `METHOD path`, as operator commands name the route.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns whether the route writes. Errors of such routes report the state of the submission.
    pub fn is_write(&self) -> bool {
        self.method == Method::POST
    }

    /// Returns whether the route requires a key. The limiter determines this, not the scope, so a
    /// route that lacks a scope by mistake still requires a key.
    pub const fn asks_for_key(&self) -> bool {
        matches!(self.limiter, Limiter::User(_))
    }

    /// Returns whether the operator can disable the route. Health checks and documents stay
    /// available, because operators use them to see whether the service is alive.
    pub const fn is_switchable(&self) -> bool {
        self.has_switch || self.scope.is_some() || matches!(self.limiter, Limiter::PerMinute(_))
    }

    /// Returns whether the route creates or confirms trades and is therefore disabled while trading
    /// is halted. Redemptions are not trades, so users can still claim payouts.
    pub fn trades(&self) -> bool {
        // Compare whole segments, so that e.g. `/v1/tradesmen` does not match.
        let path = self.path;
        let mut behind =
            ["/v1/trades", "/app/trades", "/trades"].iter().filter_map(|own| path.strip_prefix(own));
        self.method == Method::POST && behind.any(|behind| behind.is_empty() || behind.starts_with('/'))
    }

    /// Adds the deprecation headers, if the route is deprecated.
    pub(super) fn add_deprecation(&self, response: &mut Response) {
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
