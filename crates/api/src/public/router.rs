//! The public API's routes in one table, and the router that is built from it.

use axum::Router;
use axum::routing::any;
use domain::ErrorCode;
use http_kit::{HttpLayer, Limiter, Route, Shared, Surface, refusing};

use crate::openapi::described_table;
use crate::public;

const ADDRESS: Limiter = Limiter::Address;
/// The default limit, in requests per minute from one address to one route.
const USUAL: Limiter = Limiter::PerMinute(100);
const THREADS: Limiter = Limiter::PerMinute(50);

described_table! { Public:
    GET "/api/threads", THREADS, page(20, 100) => public::threads::list;
    GET "/api/threads/{id}", USUAL => public::threads::find;
    GET "/api/threads/{id}/markets", USUAL, page(20, 100) => public::lists::of_thread;
    GET "/api/threads/{id}/chapters", USUAL => public::threads::chapters;
    GET "/api/threads/{id}/social-links", USUAL => public::social::of_thread;
    GET "/api/markets", USUAL, page(50, 100) => public::lists::markets;
    GET "/api/markets/trending", USUAL, page(50, 200) => public::markets::trending;
    GET "/api/markets/featured", USUAL => public::markets::featured;
    GET "/api/markets/for-you", USUAL => public::analytics::for_you;
    GET "/api/markets/{id}", USUAL => public::markets::find;
    GET "/api/markets/{id}/quote", USUAL => public::quote::quote;
    GET "/api/markets/{id}/history", USUAL => public::history::history;
    GET "/api/markets/{id}/stream", USUAL => public::stream::stream;
    GET "/api/markets/{id}/social-link", USUAL => public::social::of_market;
    GET "/api/organizations/{id}", USUAL => public::organizations::find;
    GET "/api/organizations/{id}/threads", USUAL, page(50, 100) => public::organizations::threads;
    GET "/api/organizations/{id}/markets", USUAL, page(20, 100) => public::lists::of_organization;
    GET "/api/organizations/{id}/partners", USUAL, page(50, 100) => public::organizations::partners;
    GET "/api/partners/{id}", USUAL => public::partners::find;
    GET "/api/partners/{id}/threads", USUAL, page(50, 100) => public::partners::threads;
    GET "/api/leaderboard", USUAL, page(50, 100) => public::leaderboard::leaderboard;
    GET "/api/portfolio/analytics", USUAL => public::analytics::analytics;
    GET "/api/transactions/{hash}", USUAL => public::transactions::find;
    GET "/api/oembed", USUAL => public::oembed::oembed;
    GET "/api/openapi.json", ADDRESS => public::docs::openapi;
    GET "/api/docs", ADDRESS => public::docs::page;
}

/// Returns the routes of the public API, for the OpenAPI document and tests.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    TABLE.iter().map(|entry| &entry.route)
}

/// Returns the router of the public API. Unknown paths below `/api` also get errors in this API's
/// format.
pub fn router(app: Shared) -> Router<Shared> {
    let nothing = || any(refusing(ErrorCode::ResourceNotFound));
    // Without these routes, unknown paths would get the trading API's errors.
    let unknown =
        Router::new().route("/api", nothing()).route("/api/", nothing()).route("/api/{*rest}", nothing());
    http_kit::router(&HttpLayer::new(app, Surface::Public), TABLE, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_public_routes_matches_its_snapshot() {
        let line = |route: &Route| {
            let limit = match route.limiter {
                Limiter::PerMinute(limit) => limit.to_string(),
                _ => "address".to_owned(),
            };
            let page = route.page.map_or("-".to_owned(), |page| format!("{} to {}", page.default, page.most));
            format!("{:<36} {limit:<8} {page}", route.path)
        };
        insta::assert_snapshot!(routes().map(line).collect::<Vec<_>>().join("\n"));
    }
}
