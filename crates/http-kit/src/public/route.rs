//! A route in a table of public routes, and the router that is built from a table.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;

use super::{Code, Refusal, guard};
use crate::Shared;

/// The limiter that a route's requests count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// The route's own limiter: a number of requests per minute and address.
    PerMinute(u32),
    /// The address's shared limiter, for documents and unknown paths.
    Address,
}

/// The page sizes of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Page size if `limit` is not sent.
    pub default: u32,
    /// Maximum page size.
    pub most: u32,
}

/// A route, without its handler. All routes are GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicRoute {
    /// The path template.
    pub path: &'static str,
    pub limiter: Limiter,
    /// The page sizes. `None` if the route is not paginated.
    pub page: Option<PageSize>,
}

/// A route and its handler.
pub struct Entry<S: 'static> {
    pub route: PublicRoute,
    /// A function, because a `MethodRouter` cannot be built in a static.
    handler: fn() -> MethodRouter<S>,
}

impl<S> Entry<S> {
    pub const fn new(
        path: &'static str,
        limiter: Limiter,
        page: Option<PageSize>,
        handler: fn() -> MethodRouter<S>,
    ) -> Self {
        Self { route: PublicRoute { path, limiter, page }, handler }
    }
}

/// Returns the routes of `table`, each behind its guard.
pub fn guarded<S>(app: &Shared, table: &'static [Entry<S>]) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let routes = table.iter().fold(Router::new(), |router, entry| {
        let guarded = from_fn_with_state((Shared::clone(app), &entry.route), guard::guard);
        router.route(entry.route.path, (entry.handler)().route_layer(guarded))
    });
    routes.method_not_allowed_fallback(async || Refusal::new(Code::MethodNotAllowed))
}
