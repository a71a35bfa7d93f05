//! Every route of the public read API in one table, and the router made of it.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get};

use super::route::{Limiter, PageSize, PublicRoute};
use super::{
    Code, Refusal, analytics, docs, embeds, guard, history, leaderboard, lists, markets, organizations,
    partners, quote, social, stream, surround, threads, transactions,
};
use crate::http::Shared;

struct Entry {
    route: PublicRoute,
    handler: fn() -> MethodRouter<Shared>,
}

const fn page(default: u32, most: u32) -> Option<PageSize> {
    Some(PageSize { default, most })
}

/// `path, limiter, page => handler;` for each route.
macro_rules! table {
    ($($path:literal, $limiter:expr, $page:expr => $handler:path;)*) => {
        &[$(Entry {
            route: PublicRoute { path: $path, limiter: $limiter, page: $page },
            handler: || get($handler),
        },)*]
    };
}

/// Requests a minute from one address to one route.
const USUAL: Limiter = Limiter::PerMinute(100);
const THREADS: Limiter = Limiter::PerMinute(50);

#[rustfmt::skip]
static TABLE: &[Entry] = table! {
    "/api/threads", THREADS, page(20, 100) => threads::list;
    "/api/threads/{id}", USUAL, None => threads::find;
    "/api/threads/{id}/markets", USUAL, page(20, 100) => lists::of_thread;
    "/api/threads/{id}/chapters", USUAL, None => threads::chapters;
    "/api/threads/{id}/social-links", USUAL, None => social::of_thread;
    "/api/markets", USUAL, page(50, 100) => lists::markets;
    "/api/markets/trending", USUAL, page(50, 200) => markets::trending;
    "/api/markets/featured", USUAL, None => markets::featured;
    "/api/markets/for-you", USUAL, None => analytics::for_you;
    "/api/markets/{id}", USUAL, None => markets::find;
    "/api/markets/{id}/quote", USUAL, None => quote::quote;
    "/api/markets/{id}/history", USUAL, None => history::history;
    "/api/markets/{id}/stream", USUAL, None => stream::stream;
    "/api/markets/{id}/social-link", USUAL, None => social::of_market;
    "/api/organizations/{id}", USUAL, None => organizations::find;
    "/api/organizations/{id}/threads", USUAL, page(50, 100) => organizations::threads;
    "/api/organizations/{id}/markets", USUAL, page(20, 100) => lists::of_organization;
    "/api/organizations/{id}/partners", USUAL, page(50, 100) => organizations::partners;
    "/api/partners/{id}", USUAL, None => partners::find;
    "/api/partners/{id}/threads", USUAL, page(50, 100) => partners::threads;
    "/api/leaderboard", USUAL, page(50, 100) => leaderboard::leaderboard;
    "/api/portfolio/analytics", USUAL, None => analytics::analytics;
    "/api/transactions/{hash}", USUAL, None => transactions::find;
    "/api/oembed", USUAL, None => embeds::oembed::oembed;
    "/api/openapi.json", Limiter::Address, None => docs::openapi;
    "/api/docs", Limiter::Address, None => docs::page;
};

/// What is no answer to programs: pages for frames of other sites, pictures, what search engines read.
#[rustfmt::skip]
static PAGES: &[Entry] = table! {
    "/embed/markets/{id}", USUAL, None => embeds::market;
    "/embed/threads/{id}", USUAL, None => embeds::thread;
    "/cards/markets/{id}/{file}", USUAL, None => embeds::market_card;
    "/cards/threads/{id}/{file}", USUAL, None => embeds::thread_card;
    "/sitemap.xml", USUAL, None => embeds::sitemap;
    "/sitemaps/{id}", USUAL, None => embeds::sitemap_part;
    "/robots.txt", Limiter::Address, None => embeds::robots;
};

/// The routes of pages, which no contract describes.
pub fn pages() -> impl Iterator<Item = &'static PublicRoute> {
    PAGES.iter().map(|entry| &entry.route)
}

/// The routes of this surface, for documents and tests.
pub fn routes() -> impl Iterator<Item = &'static PublicRoute> {
    TABLE.iter().map(|entry| &entry.route)
}

/// The surface's router: what is not in the table is refused in this surface's form too.
pub fn router(state: Shared) -> Router<Shared> {
    let routes = TABLE.iter().chain(PAGES).fold(Router::new(), |router, entry| {
        let guarded = from_fn_with_state((Shared::clone(&state), &entry.route), guard::guard);
        router.route(entry.route.path, (entry.handler)().route_layer(guarded))
    });
    let nothing = || axum::routing::any(async || Refusal::new(Code::NotFound));
    routes
        .method_not_allowed_fallback(async || Refusal::new(Code::MethodNotAllowed))
        .route("/api", nothing())
        .route("/api/", nothing())
        .route("/api/{*rest}", nothing())
        .layer(from_fn_with_state(state, surround::surround))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_public_routes_reads_as_documented() {
        let line = |route: &PublicRoute| {
            let limit = match route.limiter {
                Limiter::PerMinute(limit) => limit.to_string(),
                Limiter::Address => "address".to_owned(),
            };
            let page = route.page.map_or("-".to_owned(), |page| format!("{} to {}", page.default, page.most));
            format!("{:<36} {limit:<8} {page}", route.path)
        };
        insta::assert_snapshot!(routes().chain(pages()).map(line).collect::<Vec<_>>().join("\n"));
    }
}
