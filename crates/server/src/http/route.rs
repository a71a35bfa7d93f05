//! What the table of routes says about a route.

use axum::http::Method;
use domain::key::Scope;

/// Which limiter a request draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// The user's sliding window.
    Read,
    /// The user's token bucket. A refusal of such a route says what became of the submission.
    Write,
    /// The address's limiter: routes without a key.
    Infra,
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
}

impl RouteInfo {
    /// Whether the route asks for a key. Its limiter says so: a user's limiters need a user. So a route that is declared
    /// without a scope by mistake still asks for a key.
    pub fn asks_for_key(&self) -> bool {
        self.limiter != Limiter::Infra
    }
}
