//! What only a service for development has: the embedded chain's JSON-RPC, a clock that can be moved, the demonstration.

mod content;
mod file;
mod seed;

use std::sync::Arc;

use app::Ctx;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use chain::embedded::EmbeddedNode;
use domain::time::SystemClock;
use serde::Deserialize;

use crate::http::Shared;

pub use file::{DevFile, DevKey, DevMarket, DevUser, OWNERS_FILE};
pub use seed::seed;

/// The largest JSON-RPC request: a batch of signed transactions fits.
const MAX_RPC_BODY: usize = 4 << 20;

/// `POST /rpc`: the embedded chain, as `cast`, wallets and libraries speak to a node.
pub fn rpc_route(node: Arc<EmbeddedNode>) -> Router<Shared> {
    Router::new().route("/rpc", post(rpc)).with_state(node)
}

async fn rpc(State(node): State<Arc<EmbeddedNode>>, body: Body) -> Response {
    let Ok(body) = to_bytes(body, MAX_RPC_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    // A transaction waits for its durable block: not on a thread that serves others.
    match tokio::task::spawn_blocking(move || node.handle_http(&body)).await {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

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
