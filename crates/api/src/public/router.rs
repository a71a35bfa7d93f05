//! The public API's routes in one table, and the router that is built from it.

use axum::Router;
use axum::routing::{any, get};
use http_kit::Shared;
use http_kit::public::{Code, Entry, Limiter, PageSize, PublicRoute, Refusal, finish_responses, guarded};

use super::{
    analytics, docs, history, leaderboard, lists, markets, oembed, organizations, partners, quote, social,
    stream, threads, transactions,
};

const fn page(default: u32, most: u32) -> Option<PageSize> {
    Some(PageSize { default, most })
}

/// The default limit, in requests per minute from one address to one route.
const USUAL: Limiter = Limiter::PerMinute(100);
const THREADS: Limiter = Limiter::PerMinute(50);

#[rustfmt::skip]
static TABLE: &[Entry<Shared>] = &[
    Entry::new("/api/threads", THREADS, page(20, 100), || get(threads::list)),
    Entry::new("/api/threads/{id}", USUAL, None, || get(threads::find)),
    Entry::new("/api/threads/{id}/markets", USUAL, page(20, 100), || get(lists::of_thread)),
    Entry::new("/api/threads/{id}/chapters", USUAL, None, || get(threads::chapters)),
    Entry::new("/api/threads/{id}/social-links", USUAL, None, || get(social::of_thread)),
    Entry::new("/api/markets", USUAL, page(50, 100), || get(lists::markets)),
    Entry::new("/api/markets/trending", USUAL, page(50, 200), || get(markets::trending)),
    Entry::new("/api/markets/featured", USUAL, None, || get(markets::featured)),
    Entry::new("/api/markets/for-you", USUAL, None, || get(analytics::for_you)),
    Entry::new("/api/markets/{id}", USUAL, None, || get(markets::find)),
    Entry::new("/api/markets/{id}/quote", USUAL, None, || get(quote::quote)),
    Entry::new("/api/markets/{id}/history", USUAL, None, || get(history::history)),
    Entry::new("/api/markets/{id}/stream", USUAL, None, || get(stream::stream)),
    Entry::new("/api/markets/{id}/social-link", USUAL, None, || get(social::of_market)),
    Entry::new("/api/organizations/{id}", USUAL, None, || get(organizations::find)),
    Entry::new("/api/organizations/{id}/threads", USUAL, page(50, 100), || get(organizations::threads)),
    Entry::new("/api/organizations/{id}/markets", USUAL, page(20, 100), || get(lists::of_organization)),
    Entry::new("/api/organizations/{id}/partners", USUAL, page(50, 100), || get(organizations::partners)),
    Entry::new("/api/partners/{id}", USUAL, None, || get(partners::find)),
    Entry::new("/api/partners/{id}/threads", USUAL, page(50, 100), || get(partners::threads)),
    Entry::new("/api/leaderboard", USUAL, page(50, 100), || get(leaderboard::leaderboard)),
    Entry::new("/api/portfolio/analytics", USUAL, None, || get(analytics::analytics)),
    Entry::new("/api/transactions/{hash}", USUAL, None, || get(transactions::find)),
    Entry::new("/api/oembed", USUAL, None, || get(oembed::oembed)),
    Entry::new("/api/openapi.json", Limiter::Address, None, || get(docs::openapi)),
    Entry::new("/api/docs", Limiter::Address, None, || get(docs::page)),
];

/// Returns the routes of the public API, for the OpenAPI document and tests.
pub fn routes() -> impl Iterator<Item = &'static PublicRoute> {
    TABLE.iter().map(|entry| &entry.route)
}

/// Returns the router of the public API. Unknown paths below `/api` also get errors in this API's
/// format.
pub fn router(app: Shared) -> Router<Shared> {
    let nothing = || any(async || Refusal::new(Code::NotFound));
    let routes = guarded(&app, TABLE)
        // Without these routes, unknown paths would get the trading API's errors.
        .route("/api", nothing())
        .route("/api/", nothing())
        .route("/api/{*rest}", nothing());
    finish_responses(app, routes, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_public_routes_matches_its_snapshot() {
        let line = |route: &PublicRoute| {
            let limit = match route.limiter {
                Limiter::PerMinute(limit) => limit.to_string(),
                Limiter::Address => "address".to_owned(),
            };
            let page = route.page.map_or("-".to_owned(), |page| format!("{} to {}", page.default, page.most));
            format!("{:<36} {limit:<8} {page}", route.path)
        };
        insta::assert_snapshot!(routes().map(line).collect::<Vec<_>>().join("\n"));
    }
}
