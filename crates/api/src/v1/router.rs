//! The trading API's routes in one table, and the router that is built from it.

use app::limits::LimitKind;
use axum::Router;
use domain::ErrorCode;
use domain::key::Scope;
use domain::page::MAX_PAGE;
use http_kit::{Entry, HttpLayer, Limiter, Route, Shared, Surface};

use crate::openapi::described_table;
use crate::{docs_pages, v1};

const ADDRESS: Limiter = Limiter::Address;
const READ: Limiter = Limiter::User(LimitKind::Read);
const WRITE: Limiter = Limiter::User(LimitKind::Write);
const REDELIVERY: Limiter = Limiter::User(LimitKind::Redelivery);

described_table! { Trading:
    GET "/v1/health", ADDRESS => v1::health::health;
    GET "/v1/ready", ADDRESS => v1::health::ready;
    GET "/v1/openapi.json", ADDRESS => v1::docs::openapi;
    GET "/v1/docs", ADDRESS => v1::docs::page;
    GET "/v1/docs/{*asset}", ADDRESS => v1::docs::file;
    GET "/v1/markets", READ, scope(Scope::MarketsRead), page(20, MAX_PAGE) => v1::markets::list;
    GET "/v1/markets/{id}", READ, scope(Scope::MarketsRead) => v1::markets::find;
    GET "/v1/markets/{id}/quote", READ, scope(Scope::MarketsQuote) => v1::quote::quote;
    GET "/v1/markets/{id}/predictions", READ, scope(Scope::MarketsRead), page(50, MAX_PAGE) => v1::predictions::list;
    GET "/v1/markets/{id}/history", READ, scope(Scope::MarketsRead) => v1::history::history;
    POST "/v1/trades", WRITE, scope(Scope::TradesWrite) => v1::trades::create::create;
    POST "/v1/trades/batch", WRITE, scope(Scope::TradesWrite) => v1::trades::batch::create_batch;
    GET "/v1/trades", READ, scope(Scope::TradesRead), page(20, MAX_PAGE) => v1::trades::read::list;
    GET "/v1/trades/{id}", READ, scope(Scope::TradesRead) => v1::trades::read::find;
    POST "/v1/trades/{id}/confirm", WRITE, scope(Scope::TradesWrite) => v1::trades::confirm::confirm;
    GET "/v1/traces/{correlationId}", READ, scope(Scope::TradesRead) => v1::traces::find;
    GET "/v1/events", READ, scope(Scope::TradesRead), page(50, MAX_PAGE) => v1::events::list;
    POST "/v1/redemptions", WRITE, scope(Scope::TradesWrite) => v1::redemptions::create;
    GET "/v1/redemptions", READ, scope(Scope::TradesRead), page(20, MAX_PAGE) => v1::redemptions::list;
    GET "/v1/redemptions/{id}", READ, scope(Scope::TradesRead) => v1::redemptions::find;
    GET "/v1/portfolio", READ, scope(Scope::PortfolioRead) => v1::portfolio::summary;
    GET "/v1/portfolio/positions", READ, scope(Scope::PortfolioRead) => v1::portfolio::positions;
    GET "/v1/webhooks/events", READ, scope(Scope::WebhooksManage), page(25, MAX_PAGE) => v1::webhooks::events::list;
    GET "/v1/webhooks/events/{id}", READ, scope(Scope::WebhooksManage) => v1::webhooks::events::find;
    POST "/v1/webhooks/events/{id}/redeliver", REDELIVERY, scope(Scope::WebhooksManage) => v1::webhooks::sends::redeliver;
    POST "/v1/webhooks/test", REDELIVERY, scope(Scope::WebhooksManage) => v1::webhooks::sends::test;
    GET "/v1/webhooks/endpoint", READ, scope(Scope::WebhooksManage) => v1::webhooks::endpoint::endpoint;
    POST "/v1/auth/api-keys/me/webhook-secret/rotate", WRITE, scope(Scope::WebhooksManage) => v1::webhooks::secret::rotate;
    POST "/v1/account/pause", WRITE, scope(Scope::TradesWrite) => v1::account_pause::pause;
    GET "/v1/account/usage", READ, scope(Scope::AuthManage) => v1::usage::usage;
    GET "/v1/account/readiness", READ, scope(Scope::PortfolioRead) => v1::readiness::readiness;
    GET "/v1/key", READ => v1::key::key;
    GET "/v1/sandbox/clock", READ => v1::sandbox_clock::read;
    POST "/v1/sandbox/clock", WRITE => v1::sandbox_clock::make_move;
    GET "/docs/api-errors", ADDRESS => docs_pages::index;
    GET "/docs/api-errors.md", ADDRESS => docs_pages::index_markdown;
    GET "/docs/api-errors/{code}", ADDRESS => docs_pages::code;
}

/// Returns the routes of the trading API, for the OpenAPI document and tests.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    TABLE.iter().map(|entry| &entry.route)
}

/// Returns the router of the trading API.
pub fn router(app: &Shared) -> Router<Shared> {
    router_of(TABLE, app)
}

/// Returns the handlers without their guard, for requests from within the process. Such a request must have
/// the caller and the route in its extensions, and have passed the checks of the guard.
pub fn unguarded(app: &Shared) -> Router {
    let add = |router: Router<Shared>, Entry { route, handler }: &Entry<Shared>| {
        router.route(route.path, handler())
    };
    let unknown = http_kit::refusing(ErrorCode::ResourceNotFound);
    TABLE.iter().fold(Router::new(), add).fallback(unknown).with_state(Shared::clone(app))
}

fn router_of(table: &'static [Entry<Shared>], app: &Shared) -> Router<Shared> {
    http_kit::router(&HttpLayer::new(Shared::clone(app), Surface::Trading), table, Router::new())
}

#[cfg(test)]
mod tests;
