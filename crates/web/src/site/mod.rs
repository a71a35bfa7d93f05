//! The pages of the web application. They are complete without scripts.

mod account;
mod activity;
mod acts;
mod admin;
mod confirmation;
mod country;
mod design;
mod developers;
mod docs;
mod error_page;
mod form_body;
mod guard;
mod history;
mod home;
mod leaderboard;
mod live;
mod market;
mod markets;
mod notifications;
mod outcomes;
mod own_trade;
mod owners;
mod preferences;
mod profit;
mod qr_code;
mod search;
mod security;
mod session;
mod shell;
mod sign_in;
mod slippage;
mod status;
mod threads;
mod trace;
mod traders;
mod trading;
mod transaction;
mod welcome;

pub use guard::POLICY;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use http_kit::{Entry, HttpLayer, Limiter, Route, Shared, Surface};

use crate::assets;

/// Requests per minute from one address to one page.
const PAGES: Limiter = Limiter::PerMinute(300);
const WRITES: Limiter = Limiter::PerMinute(60);
/// A quote for each change of the amount.
const QUOTES: Limiter = Limiter::PerMinute(240);
/// A page loads several files.
const FILES: Limiter = Limiter::PerMinute(3_000);

static TABLE: &[Entry<Shared>] = http_kit::table! { Web:
    GET "/", PAGES => home::page;
    GET "/markets", PAGES, page(24, 24) => markets::page;
    GET "/markets/{id}", PAGES => market::page;
    GET "/threads", PAGES, page(24, 24) => threads::list;
    GET "/threads/{id}", PAGES => threads::page;
    GET "/organizations/{id}", PAGES => owners::organization;
    GET "/partners/{id}", PAGES => owners::partner;
    GET "/leaderboard", PAGES, page(50, 50) => leaderboard::page;
    GET "/traders/{address}", PAGES => traders::page;
    GET "/search", PAGES => search::page;
    GET "/tx/{hash}", PAGES => transaction::page;
    GET "/status", PAGES => status::page;
    GET "/design", PAGES => design::page;
    GET "/docs", PAGES => docs::index;
    GET "/docs.md", PAGES => docs::index_markdown;
    GET "/docs/{id}", PAGES => docs::page;
    GET "/docs/api/{id}", PAGES => docs::page_of_api;
    GET "/llms.txt", PAGES => docs::llms::index;
    GET "/llms-full.txt", PAGES => docs::llms::full;
    GET "/sign-up", PAGES => sign_in::sign_up_page;
    GET "/sign-in", PAGES => sign_in::sign_in_page;
    POST "/sign-out", WRITES => sign_in::sign_out;
    POST "/sign-in/sample", WRITES => sign_in::sign_in_as_sample;
    POST "/app/challenges", WRITES => sign_in::challenge;
    POST "/app/sign-up", WRITES => sign_in::sign_up;
    POST "/app/sign-in", WRITES => sign_in::sign_in;
    POST "/app/step-up", WRITES => sign_in::step_up;
    GET "/portfolio", PAGES => account::portfolio;
    GET "/portfolio/history", PAGES, page(25, 25) => history::page;
    GET "/portfolio/history/{id}", WRITES => history::export;
    POST "/portfolio/claims", WRITES => account::claim;
    GET "/deposit", PAGES => account::deposit;
    POST "/faucet", WRITES => account::faucet;
    GET "/withdraw", PAGES => account::withdraw;
    GET "/acts/{id}", PAGES => acts::receipt;
    GET "/trades/{id}", PAGES => trading::receipt;
    POST "/trades/{id}/confirm", WRITES => confirmation::confirm;
    POST "/app/quotes", QUOTES => trading::quote;
    POST "/app/trades", WRITES => trading::create;
    GET "/app/trades/{id}", PAGES => trading::find;
    GET "/app/trades/by-idempotency-key/{id}", PAGES => trading::find_by_key;
    POST "/app/acts", WRITES => acts::create;
    GET "/app/acts/{id}", PAGES => acts::find;
    POST "/app/acts/{id}/signature", WRITES => acts::add_signature;
    GET "/settings/security", PAGES => security::page;
    POST "/settings/security/pause", WRITES => security::pause_trading;
    POST "/settings/security/resume", WRITES => security::resume_trading;
    POST "/settings/sessions/end", WRITES => security::end_sessions;
    POST "/settings/security/second-owner", WRITES => security::choose_second_owner;
    POST "/settings/credentials/{id}/remove", WRITES => security::remove_credential;
    POST "/app/credentials", WRITES => security::add_credential;
    GET "/settings/keys", PAGES => developers::keys::page;
    POST "/settings/keys", WRITES => developers::keys::issue;
    GET "/settings/keys/{id}", PAGES => developers::key::page;
    POST "/settings/keys/{id}/caps", WRITES => developers::key::set_caps;
    POST "/settings/keys/{id}/access", WRITES => developers::key::set_access;
    POST "/settings/keys/{id}/pause", WRITES => developers::key::pause_key;
    POST "/settings/keys/{id}/resume", WRITES => developers::key::resume_key;
    POST "/settings/keys/{id}/agent", WRITES => developers::key::mark_agent;
    POST "/settings/keys/{id}/revoke", WRITES => developers::key::revoke_key;
    POST "/settings/keys/{id}/webhook", WRITES => developers::key::set_webhook;
    POST "/settings/keys/{id}/webhook/test", WRITES => developers::key::test_webhook;
    POST "/settings/keys/{id}/webhook/rotate", WRITES => developers::key::rotate_webhook_secret;
    GET "/developers", PAGES => developers::usage::page;
    GET "/developers/requests", PAGES, page(50, 50) => developers::requests::page;
    GET "/developers/webhooks", PAGES, page(25, 25) => developers::webhooks::list;
    GET "/developers/webhooks/{id}", PAGES => developers::webhooks::page;
    POST "/developers/webhooks/{id}/redeliver", WRITES => developers::webhooks::redeliver_event;
    GET "/admin", PAGES => admin::overview::page;
    GET "/admin/markets", PAGES => admin::markets::list;
    GET "/admin/markets/new", PAGES => admin::markets::new;
    GET "/admin/markets/{id}", PAGES => admin::market::page;
    GET "/admin/users", PAGES => admin::users::list;
    GET "/admin/users/{id}", PAGES => admin::user::page;
    GET "/admin/catalog", PAGES => admin::catalog::page;
    GET "/admin/catalog/threads/{id}", PAGES => admin::catalog::thread;
    POST "/admin/catalog/plan", WRITES => admin::catalog::plan;
    GET "/admin/switches", PAGES => admin::service::switches;
    GET "/admin/webhooks", PAGES => admin::service::webhooks;
    GET "/admin/quarantine", PAGES => admin::service::quarantine;
    GET "/admin/audit", PAGES => admin::audit::page;
    POST "/admin/acts", WRITES => admin::acts::create;
    GET "/admin/acts/{id}", PAGES => admin::acts::page;
    POST "/app/admin-acts/{id}", WRITES => admin::acts::confirm_act;
    GET "/app/live", PAGES => live::stream;
    GET "/welcome", PAGES => welcome::page;
    GET "/notifications", PAGES => notifications::page;
    GET "/settings/preferences", PAGES => preferences::page;
    POST "/settings/preferences", WRITES => preferences::set_preferences;
    POST "/settings/preferences/name", WRITES => preferences::set_public_name;
    POST "/preferences/theme", PAGES => preferences::set_theme;
    GET "/assets/{folder}/{*name}", FILES => assets::file;
};

/// Returns the routes of the site, for the kill switches and tests.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    TABLE.iter().map(|entry| &entry.route)
}

/// Returns the router of the site.
pub fn router(app: Shared) -> Router {
    let guard = from_fn_with_state(Shared::clone(&app), guard::guard);
    http_kit::router(&layer(&app), TABLE, Router::new()).layer(guard).with_state(app)
}

/// Returns the handler of the paths that the site does not have.
pub fn unknown_path(app: &Shared) -> impl Handler<((),), ()> + use<> {
    http_kit::unknown_path(layer(app)).layer(from_fn_with_state(Shared::clone(app), guard::guard))
}

fn layer(app: &Shared) -> HttpLayer {
    HttpLayer::new(Shared::clone(app), Surface::Web).error_page(error_page::show)
}
