//! The HTTP APIs: the trading API (`/v1`), the public read API (`/api`), with their OpenAPI documents and
//! the pages about error codes, and the tools for agents (`/mcp`).

mod candles;
pub mod docs_pages;
pub mod mcp;
pub mod openapi;
pub mod public;
mod reference;
pub mod v1;

use axum::Router;
use http_kit::Shared;

/// Returns the router of the APIs.
pub fn router(app: Shared) -> Router {
    v1::router::router(&app)
        // The public API brings its own layers and error format.
        .merge(public::router(Shared::clone(&app)))
        .merge(mcp::router(&app))
        .with_state(app)
}
