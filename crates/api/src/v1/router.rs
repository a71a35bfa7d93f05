//! The trading API's routes in one table, and the router that is built from it.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use domain::ErrorCode;
use domain::key::Scope;
use http_kit::{HttpLayer, Limiter, Problem, RouteInfo, Shared};

use crate::{docs_pages, v1};

/// A route and its handler.
struct Entry {
    info: RouteInfo,
    handler: fn() -> MethodRouter<Shared>,
}

/// Builds the table from entries of the form `METHOD path, scope, limiter, page size => handler;`.
/// A deprecated route has `, until <Deprecation>` after its handler.
macro_rules! table {
    ($($method:ident $path:literal, $scope:expr, $limiter:ident, $page:expr
        => $handler:path $(, until $deprecation:expr)?;)*) => {
        &[$(Entry {
            info: RouteInfo {
                method: Method::$method,
                path: $path,
                scope: $scope,
                limiter: Limiter::$limiter,
                page_default: $page,
                deprecation: [$(Some($deprecation),)? None][0],
            },
            // A function, because a `MethodRouter` cannot be built in a static.
            handler: || on(MethodFilter::$method, $handler),
        },)*]
    };
}

#[rustfmt::skip]
static TABLE: &[Entry] = table! {
    GET "/v1/health", None, Infra, None => v1::health::health;
    GET "/v1/ready", None, Infra, None => v1::health::ready;
    GET "/v1/openapi.json", None, Infra, None => v1::docs::openapi;
    GET "/v1/docs", None, Infra, None => v1::docs::page;
    GET "/v1/docs/{*asset}", None, Infra, None => v1::docs::file;
    GET "/v1/markets", Some(Scope::MarketsRead), Read, Some(20) => v1::markets::list;
    GET "/v1/markets/{id}", Some(Scope::MarketsRead), Read, None => v1::markets::find;
    GET "/v1/markets/{id}/quote", Some(Scope::MarketsQuote), Read, None => v1::quote::quote;
    GET "/v1/markets/{id}/predictions", Some(Scope::MarketsRead), Read, Some(50) => v1::predictions::list;
    GET "/v1/markets/{id}/history", Some(Scope::MarketsRead), Read, None => v1::history::history;
    POST "/v1/trades", Some(Scope::TradesWrite), Write, None => v1::trades::create::create;
    GET "/v1/trades", Some(Scope::TradesRead), Read, Some(20) => v1::trades::read::list;
    GET "/v1/trades/{id}", Some(Scope::TradesRead), Read, None => v1::trades::read::find;
    POST "/v1/trades/{id}/confirm", Some(Scope::TradesWrite), Write, None => v1::trades::confirm::confirm;
    GET "/v1/traces/{correlationId}", Some(Scope::TradesRead), Read, None => v1::traces::find;
    GET "/v1/events", Some(Scope::TradesRead), Read, Some(50) => v1::events::list;
    POST "/v1/redemptions", Some(Scope::TradesWrite), Write, None => v1::redemptions::create;
    GET "/v1/redemptions", Some(Scope::TradesRead), Read, Some(20) => v1::redemptions::list;
    GET "/v1/redemptions/{id}", Some(Scope::TradesRead), Read, None => v1::redemptions::find;
    GET "/v1/portfolio", Some(Scope::PortfolioRead), Read, None => v1::portfolio::summary;
    GET "/v1/portfolio/positions", Some(Scope::PortfolioRead), Read, None => v1::portfolio::positions;
    GET "/v1/webhooks/events", Some(Scope::WebhooksManage), Read, Some(25) => v1::webhooks::events::list;
    GET "/v1/webhooks/events/{id}", Some(Scope::WebhooksManage), Read, None => v1::webhooks::events::find;
    POST "/v1/webhooks/events/{id}/redeliver", Some(Scope::WebhooksManage), Redelivery, None => v1::webhooks::sends::redeliver;
    POST "/v1/webhooks/test", Some(Scope::WebhooksManage), Redelivery, None => v1::webhooks::sends::test;
    GET "/v1/webhooks/endpoint", Some(Scope::WebhooksManage), Read, None => v1::webhooks::endpoint::endpoint;
    POST "/v1/auth/api-keys/me/webhook-secret/rotate", Some(Scope::WebhooksManage), Write, None => v1::webhooks::secret::rotate;
    POST "/v1/account/pause", Some(Scope::TradesWrite), Write, None => v1::account_pause::pause;
    GET "/v1/account/usage", Some(Scope::AuthManage), Read, None => v1::usage::usage;
    GET "/v1/account/readiness", Some(Scope::PortfolioRead), Read, None => v1::readiness::readiness;
    GET "/v1/key", None, Read, None => v1::key::key;
    GET "/docs/api-errors", None, Infra, None => docs_pages::index;
    GET "/docs/api-errors/{code}", None, Infra, None => docs_pages::code;
};

/// Returns the routes of the trading API, for the OpenAPI document and tests.
pub fn routes() -> impl Iterator<Item = &'static RouteInfo> {
    TABLE.iter().map(|entry| &entry.info)
}

/// Returns the router of the trading API, with a problem response for every unknown path and method.
///
/// The routes in `beside` get request ids, the common response headers and problem bodies, but not
/// the guard: no deadline, no authentication and no rate limit.
pub fn router(app: &Shared, beside: Router<Shared>) -> Router<Shared> {
    router_of(TABLE, app, beside)
}

fn router_of(table: &'static [Entry], app: &Shared, beside: Router<Shared>) -> Router<Shared> {
    // Each route gets its own layer, because the guard needs the route's properties.
    let routes = table.iter().fold(Router::new(), |router, entry| {
        let layer = HttpLayer::guarded(Shared::clone(app), &entry.info);
        router.route(entry.info.path, (entry.handler)().route_layer(layer))
    });
    let layer = HttpLayer::without_guard(Shared::clone(app));
    let refused = |code| (move || std::future::ready(Problem::new(code))).layer(layer.clone());
    routes
        .merge(beside.layer(layer.clone()))
        .method_not_allowed_fallback(refused(ErrorCode::MethodNotAllowed))
        .fallback(refused(ErrorCode::ResourceNotFound))
}

#[cfg(test)]
mod tests;
