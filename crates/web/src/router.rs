//! The routes of the web surface in one table, and the router that is built from it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Request};
use axum::handler::Handler;
use axum::http::header::ACCEPT;
use http_kit::{Entry, HttpLayer, Limiter, Route, Shared, Surface};

use super::card::{self, Cards};
use super::crawlers::{self, Sitemaps};
use super::{page, pages, site};

/// The state of the web surface's handlers.
#[derive(Clone)]
pub struct WebState {
    app: Shared,
    cards: Arc<Cards>,
    sitemaps: Arc<Sitemaps>,
}

impl FromRef<WebState> for Shared {
    fn from_ref(state: &WebState) -> Self {
        Self::clone(&state.app)
    }
}

impl FromRef<WebState> for Arc<Cards> {
    fn from_ref(state: &WebState) -> Self {
        Self::clone(&state.cards)
    }
}

impl FromRef<WebState> for Arc<Sitemaps> {
    fn from_ref(state: &WebState) -> Self {
        Self::clone(&state.sitemaps)
    }
}

/// The default limit, in requests per minute from one address to one route.
const USUAL: Limiter = Limiter::PerMinute(100);

static TABLE: &[Entry<WebState>] = http_kit::table! { Public:
    GET "/embed/markets/{id}", USUAL => pages::market;
    GET "/embed/threads/{id}", USUAL => pages::thread;
    GET "/cards/markets/{id}/{file}", USUAL => card::of_market;
    GET "/cards/threads/{id}/{file}", USUAL => card::of_thread;
    GET "/sitemap.xml", USUAL => crawlers::sitemap;
    GET "/sitemaps/{id}", USUAL => crawlers::sitemap_part;
    GET "/robots.txt", Limiter::Address => crawlers::robots;
};

/// Returns the routes of pages and documents for other sites, for the kill switches and tests.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    TABLE.iter().map(|entry| &entry.route)
}

/// Returns the routes of the web application, for the kill switches and tests.
pub fn site_routes() -> impl Iterator<Item = &'static Route> {
    site::routes()
}

/// Returns the router of the web surface. It also answers the paths that no router of the service
/// has.
pub fn router(app: Shared) -> Router {
    let problem = http_kit::unknown_path(HttpLayer::new(Shared::clone(&app), Surface::Trading));
    let page = site::unknown_path(&app);
    let state = WebState { app: Shared::clone(&app), cards: Arc::default(), sitemaps: Arc::default() };
    let layer = HttpLayer::new(Shared::clone(&app), Surface::Public).error_page(page::show_refusal);
    http_kit::router(&layer, TABLE, Router::new())
        .with_state(state)
        .merge(site::router(Shared::clone(&app)))
        // A browser gets the page of the error, a program a problem document.
        .fallback(async move |request: Request| match is_page(&request) {
            true => page.call(request, ()).await,
            false => problem.call(request, ()).await,
        })
}

/// Returns whether a request is for a page of the site.
fn is_page(request: &Request) -> bool {
    let is_of = |prefix: &str| request.uri().path().starts_with(prefix);
    let accepted = request.headers().get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html")) && !is_of("/v1/") && !is_of("/api/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_routes_matches_its_snapshot() {
        let line = |route: &Route| match route.limiter {
            Limiter::PerMinute(limit) => format!("{:<36} {limit}", route.path),
            _ => format!("{:<36} address", route.path),
        };
        insta::assert_snapshot!(routes().map(line).collect::<Vec<_>>().join("\n"));
    }
}
