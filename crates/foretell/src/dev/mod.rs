//! Features that exist only in development: a clock that can be advanced, and the demonstration.

mod content;
mod file;
mod seed;
mod simulate;

use std::sync::Arc;

use app::Ctx;
use app::entropy::Entropy;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use domain::time::SystemClock;
use embedded_chain::EmbeddedNode;
use serde::Deserialize;

use http_kit::Shared;

pub use file::{DevFile, DevKey, DevMarket, DevUser, OWNERS_FILE, read_sample_users, write_owners};
pub use seed::seed;
pub use simulate::simulate;

/// Returns a random number below `sides`.
fn roll(dice: &dyn Entropy, sides: usize) -> usize {
    let mut bytes = [0; 8];
    dice.fill(&mut bytes);
    (u64::from_be_bytes(bytes) % sides.max(1) as u64) as usize
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

/// `POST /dev/clock/advance {"ms": n}`: advances the time of the service and of the embedded chain.
pub fn clock_route(clock: Arc<SystemClock>, node: Arc<EmbeddedNode>, ctx: Ctx) -> Router<Shared> {
    Router::new().route("/dev/clock/advance", post(advance)).with_state(TestClock { clock, node, ctx })
}

async fn advance(State(test): State<TestClock>, body: Body) -> Response {
    let parsed =
        to_bytes(body, 1024).await.ok().and_then(|body| serde_json::from_slice::<Advance>(&body).ok());
    let Some(Advance { ms }) = parsed.filter(|advance| advance.ms >= 0) else {
        return (StatusCode::BAD_REQUEST, "the body must be {\"ms\": n} with n of 0 or more\n")
            .into_response();
    };
    test.clock.advance(ms);
    // Mine a block with the new time, so that the contracts see it too.
    if let Err(error) = test.node.mine() {
        tracing::error!(?error, "advanced the clock, but the chain did not mine a block");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    // Workers may be idle until a time that has now passed.
    test.ctx.wake.executor.notify_waiters();
    test.ctx.wake.sync.notify_waiters();
    axum::Json(serde_json::json!({ "now": test.ctx.now() })).into_response()
}
