//! What the table of routes says about a route.

use app::limits::Kind;
use axum::http::Method;
use domain::key::Scope;

/// Which limiter a request draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// The user's sliding window.
    Read,
    /// The user's token bucket. A refusal of such a route says what became of the submission.
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
    /// The scope that the key must have; `None` where no key is asked for.
    pub scope: Option<Scope>,
    /// Which limiter applies.
    pub limiter: Limiter,
    /// The page size where none is asked for; `None` where the route does not page.
    pub page_default: Option<u32>,
}
