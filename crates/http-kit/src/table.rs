//! Route tables, and the router that is built from one.

use axum::Router;
use axum::handler::Handler;
use axum::routing::MethodRouter;
use domain::ErrorCode;

use super::{HttpLayer, Problem, Route};

/// A row of a route table: a route and its handler.
#[derive(Debug)]
pub struct Entry<S: 'static> {
    pub route: Route,
    /// A function, because a `MethodRouter` cannot be built in a static.
    pub handler: fn() -> MethodRouter<S>,
}

/// Builds a route table from a surface and rows of the form `METHOD path, limiter => handler;`. The
/// limiter may be followed by `scope(..)`, `page(default, most)` and `deprecated(..)`.
#[macro_export]
macro_rules! table {
    ($surface:ident: $($method:ident $path:literal, $limiter:expr $(, $property:ident($($value:expr),+))*
        => $handler:path;)*) => {
        &[$($crate::Entry {
            route: $crate::Route::new($crate::Surface::$surface, ::axum::http::Method::$method, $path, $limiter)
                $(.$property($($value),+))*,
            handler: || ::axum::routing::on(::axum::routing::MethodFilter::$method, $handler),
        },)*]
    };
}

/// Returns the routes of `table`, each behind its guard.
///
/// The routes in `beside` get request ids, the common response headers and error bodies, but not the
/// guard: no deadline, no authentication and no rate limit.
pub fn router<S>(layer: &HttpLayer, table: &'static [Entry<S>], beside: Router<S>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    // Each route gets its own layer, because the guard needs the route's properties.
    let routes = table.iter().fold(Router::new(), |router, Entry { route, handler }| {
        router.route(route.path, handler().route_layer(layer.guarding(route)))
    });
    routes
        .merge(beside.layer(layer.clone()))
        .method_not_allowed_fallback(refusing(ErrorCode::MethodNotAllowed).layer(layer.clone()))
}

/// Returns the handler of the paths that no table has.
pub fn unknown_path<S: Clone + Send + Sync + 'static>(layer: HttpLayer) -> impl Handler<((),), S> {
    refusing(ErrorCode::ResourceNotFound).layer(layer)
}

/// Returns a handler whose only response is this error.
pub fn refusing<S: Clone + Send + Sync + 'static>(code: ErrorCode) -> impl Handler<((),), S> {
    move || std::future::ready(Problem::new(code))
}
