//! What the table of routes says about a route.

use app::limits::Kind;
use axum::http::header::LINK;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use domain::Timestamp;
use domain::key::Scope;

/// Which limiter a request draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// The user's sliding window.
    Read,
    /// The user's token bucket.
    Write,
    /// The user's token bucket for redeliveries.
    Redelivery,
    /// The address's limiter: routes without a key.
    Infra,
}

impl Limiter {
    /// Which of the user's limiters; `None` where it is the address's.
    pub const fn of_user(self) -> Option<Kind> {
        match self {
            Self::Read => Some(Kind::Read),
            Self::Write => Some(Kind::Write),
            Self::Redelivery => Some(Kind::Redelivery),
            Self::Infra => None,
        }
    }
}

/// One route, but for its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    /// The method. A GET route answers HEAD too.
    pub method: Method,
    /// The path's template.
    pub path: &'static str,
    /// The scope that the key must have; `None` where any key will do, and where none is asked for.
    pub scope: Option<Scope>,
    /// Which limiter applies.
    pub limiter: Limiter,
    /// The page size where none is asked for; `None` where the route does not page.
    pub page_default: Option<u32>,
    /// When the route will go; `None` where it stays.
    pub deprecation: Option<Deprecation>,
}

/// A route that is scheduled for removal. Nothing changes by itself when the day has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation {
    /// From when on the route may be gone.
    pub sunset: Timestamp,
    /// The page that says what takes its place.
    pub link: &'static str,
}

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

impl RouteInfo {
    /// `METHOD path`, as the operator names it.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether the route writes: a refusal of it says what became of the submission.
    pub fn is_write(&self) -> bool {
        self.method == Method::POST
    }

    /// Whether the route begins or releases trades, so that a halt of trading closes it. Claiming what a settled market
    /// owes is no trade.
    pub fn trades(&self) -> bool {
        let behind = (self.method == Method::POST).then(|| self.path.strip_prefix("/v1/trades"));
        behind.flatten().is_some_and(|behind| behind.is_empty() || behind.starts_with('/'))
    }

    /// Says that the route will go, where it will.
    pub(super) fn tell_deprecation(&self, response: &mut Response) {
        let Some(Deprecation { sunset, link }) = self.deprecation else { return };
        let headers = response.headers_mut();
        headers.insert(DEPRECATION, HeaderValue::from_static("true"));
        let texts = [(SUNSET, sunset.http_date()), (LINK, format!("<{link}>; rel=\"deprecation\""))];
        for (name, text) in texts {
            // A date and an address of the table have no character that a header cannot carry.
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.append(name, value);
            }
        }
    }
}

impl RouteInfo {
    /// Whether the route asks for a key. Its limiter says so: a user's limiters need a user. So a route that is declared
    /// without a scope by mistake still asks for a key.
    pub fn asks_for_key(&self) -> bool {
        self.limiter != Limiter::Infra
    }
}
