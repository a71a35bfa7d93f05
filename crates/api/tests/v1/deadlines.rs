//! Requests that time out. Time is the runtime's own, which is paused, so it advances when nothing
//! else runs.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use domain::ErrorCode;
use http_testkit::Answer;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::scene::{Scene, ids};

/// Pauses time and awaits the response, which must arrive `seconds` after the request (less than
/// one second has already passed).
async fn answered_after(seconds: u64, call: JoinHandle<Answer>) -> Answer {
    tokio::time::pause();
    let began = Instant::now();
    let answer = call.await.unwrap();
    let waited = began.elapsed();
    tokio::time::resume();
    let expected = Duration::from_secs(seconds - 1)..=Duration::from_secs(seconds) + Duration::from_millis(1);
    assert!(expected.contains(&waited), "{waited:?}");
    answer
}

#[tokio::test]
async fn a_read_is_aborted_after_ten_seconds() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let held = app.faults.hold("eth_call");
    let call = tokio::spawn(client.quote(market, 0, "buy", "1").send());
    held.reached().await;
    let answer = answered_after(10, call).await;
    answer.refused(ErrorCode::RequestTimeout);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let usage = client.get("/v1/account/usage").await.ok();
    assert_eq!(usage["usage"]["latency"]["24h"]["count"], 1, "it is counted all the same");
}

#[tokio::test]
async fn a_trade_can_still_be_created_after_its_request_timed_out() {
    let Scene { app, http, client, market, .. } = Scene::new().await;
    let held = app.faults.hold("eth_call");
    let call = tokio::spawn(client.buy(market, 0, "10").idempotent("k").send());
    held.reached().await;
    let problem = answered_after(10, call).await.refused(ErrorCode::RequestTimeout);
    assert_eq!(problem["extensions"]["submission"], "unknown");
    assert_eq!(app.rows().await.trades, 0);
    held.release();
    http.state.mutations.close();
    http.state.mutations.wait().await;
    assert_eq!(app.rows().await.trades, 1, "what the request began has come to its end");
    let trade = client.buy(market, 0, "10").idempotent("k").await.expect(201)["trade"].take();
    assert_eq!(ids(&client.get("/v1/trades").await.ok()), [trade["id"].as_str().unwrap()]);
}

#[tokio::test]
async fn a_repeated_request_waits_two_seconds_for_the_first() {
    let Scene { app, http, client, market, .. } = Scene::new().await;
    let held = app.faults.hold("eth_call");
    let first = tokio::spawn(client.buy(market, 0, "10").idempotent("k").send());
    held.reached().await;
    let second = tokio::spawn(client.buy(market, 0, "10").idempotent("k").send());
    let answer = answered_after(2, second).await;
    let problem = answer.refused(ErrorCode::IdempotencyKeyConflict);
    assert_eq!(problem["extensions"]["reason"], "in_progress");
    assert_eq!(problem["extensions"]["submission"], "unknown");
    assert_eq!(answer.header("retry-after"), Some("1"));
    held.release();
    let mut made = first.await.unwrap().expect(201)["trade"].take();
    let replayed = client.buy(market, 0, "10").idempotent("k").await.expect(201)["trade"].take();
    assert_eq!(made["id"].take(), replayed["id"]);
    http.state.mutations.close();
    assert_eq!(app.rows().await.trades, 1);
}

#[tokio::test]
async fn a_request_without_its_body_times_out_and_changes_nothing() {
    let Scene { app, client, .. } = Scene::new().await;
    let before = app.rows().await;
    let waited_for = Arc::new(Notify::new());
    let seen = Arc::clone(&waited_for);
    let never = futures::stream::poll_fn(move |_| {
        seen.notify_one();
        Poll::<Option<Result<Bytes, std::io::Error>>>::Pending
    });
    let call = tokio::spawn(client.call("POST", "/v1/trades").raw_json(Body::from_stream(never)).send());
    waited_for.notified().await;
    let problem = answered_after(8, call).await.refused(ErrorCode::RequestTimeout);
    assert_eq!(problem["extensions"]["submission"], "not_submitted");
    assert_eq!(app.rows().await, before);
}
