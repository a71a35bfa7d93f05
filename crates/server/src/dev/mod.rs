//! What only a service for development has: a clock that can be moved, the demonstration.

mod content;
mod file;
mod seed;

use std::sync::Arc;

use app::Ctx;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use chain::embedded::EmbeddedNode;
use domain::time::SystemClock;
use serde::Deserialize;

use crate::http::Shared;

pub use file::{DevFile, DevKey, DevMarket, DevUser, OWNERS_FILE};
pub use seed::seed;

#[derive(Clone)]
struct TestClock {
    clock: Arc<SystemClock>,
    node: Arc<EmbeddedNode>,
    ctx: Ctx,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    ms: i64,
}

/// `POST /dev/clock/advance {"ms": n}`: moves the service's and the embedded chain's time forward.
pub fn clock_route(clock: Arc<SystemClock>, node: Arc<EmbeddedNode>, ctx: Ctx) -> Router<Shared> {
    Router::new().route("/dev/clock/advance", post(advance)).with_state(TestClock { clock, node, ctx })
}

async fn advance(State(test): State<TestClock>, body: Body) -> Response {
    let parsed =
        to_bytes(body, 1024).await.ok().and_then(|body| serde_json::from_slice::<Advance>(&body).ok());
    let Some(Advance { ms }) = parsed.filter(|advance| advance.ms >= 0) else {
        return (StatusCode::BAD_REQUEST, "the body is {\"ms\": n} with n of 0 or more\n").into_response();
    };
    test.clock.advance(ms);
    // A block of the new time, so that the contracts see it too.
    if let Err(error) = test.node.mine() {
        tracing::error!(?error, "the clock moved but the chain did not mine");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    test.ctx.wake.executor.notify_waiters();
    test.ctx.wake.sync.notify_waiters();
    axum::Json(serde_json::json!({ "now": test.ctx.now() })).into_response()
}
