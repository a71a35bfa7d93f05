//! What the table of this surface says about a route.

/// Which limiter a request draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// The route's own: so many requests a minute from one address.
    PerMinute(u32),
    /// The address's: documents and unknown paths.
    Address,
}

/// How many rows a list gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Where no number is asked for.
    pub default: u32,
    /// The most.
    pub most: u32,
}

/// One route, but for its handler. All of them are GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicRoute {
    /// The path's template.
    pub path: &'static str,
    /// Which limiter applies.
    pub limiter: Limiter,
    /// How many rows; `None` where the route is no list that is cut.
    pub page: Option<PageSize>,
}
