//! The routes of the web surface in one table, and the router that is built from it.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::get;
use http_kit::Shared;
use http_kit::public::{Entry, Limiter, PublicRoute, finish_responses, guarded};

use super::card::{self, Cards};
use super::crawlers::{self, Sitemaps};
use super::{page, pages};

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

#[rustfmt::skip]
static TABLE: &[Entry<WebState>] = &[
    Entry::new("/embed/markets/{id}", USUAL, None, || get(pages::market)),
    Entry::new("/embed/threads/{id}", USUAL, None, || get(pages::thread)),
    Entry::new("/cards/markets/{id}/{file}", USUAL, None, || get(card::of_market)),
    Entry::new("/cards/threads/{id}/{file}", USUAL, None, || get(card::of_thread)),
    Entry::new("/sitemap.xml", USUAL, None, || get(crawlers::sitemap)),
    Entry::new("/sitemaps/{id}", USUAL, None, || get(crawlers::sitemap_part)),
    Entry::new("/robots.txt", Limiter::Address, None, || get(crawlers::robots)),
];

/// Returns the routes of the web surface, for the kill switches and tests.
pub fn routes() -> impl Iterator<Item = &'static PublicRoute> {
    TABLE.iter().map(|entry| &entry.route)
}

/// Returns the router of the web surface.
pub fn router(app: Shared) -> Router {
    let state = WebState { app: Shared::clone(&app), cards: Arc::default(), sitemaps: Arc::default() };
    finish_responses(app, guarded(&state.app, TABLE), Some(page::show_refusal)).with_state(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_routes_matches_its_snapshot() {
        let line = |route: &PublicRoute| match route.limiter {
            Limiter::PerMinute(limit) => format!("{:<36} {limit}", route.path),
            Limiter::Address => format!("{:<36} address", route.path),
        };
        insta::assert_snapshot!(routes().map(line).collect::<Vec<_>>().join("\n"));
    }
}
