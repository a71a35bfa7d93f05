//! Repeated requests create only one trade.

use domain::ErrorCode;
use futures::future::join_all;
use http_testkit::ServeHttp;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, ids};

/// Returns a body without `_meta`.
fn content(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("_meta").unwrap();
    body
}

#[tokio::test]
async fn a_replay_equals_the_first_answer_except_for_meta() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let call = || client.buy(market, 0, "25").with("metadata", json!({ "a": "1", "b": "2" })).idempotent("k");
    let first = call().await;
    first.created();
    app.run_workers().await;
    app.advance_ms(1_000).await;
    let rows = app.rows().await;

    let replay = call().await;
    let body = replay.expect(201);
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(body["_meta"]["idempotent"], true);
    assert_ne!(body["_meta"]["requestId"], first.json()["_meta"]["requestId"]);
    assert_ne!(body["_meta"]["timestamp"], first.json()["_meta"]["timestamp"]);
    assert_eq!(content(body), content(first.json()));
    assert_eq!(app.rows().await, rows);
    insta::assert_snapshot!(replay);
}

#[tokio::test]
async fn a_repeated_client_request_id_returns_the_current_trade() {
    let scene = Scene::new().await;
    let call = || scene.client.buy(scene.market, 0, "25").with("clientRequestId", "mine");
    let trade = scene.settled(call()).await;
    let rows = scene.app.rows().await;
    let found = call().await;
    let body = found.ok();
    assert_eq!((&body["trade"], &body["trade"]["status"]), (&trade, &"completed".into()));
    assert_eq!(found.header("idempotent-replayed"), Some("true"));
    assert_eq!(body["_meta"]["idempotent"], true);
    assert_eq!(scene.app.rows().await, rows);
}

#[tokio::test]
async fn requests_are_equal_despite_amount_spelling_and_member_order() {
    let Scene { client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "10").idempotent("k").await.created();
    let id = market.id;
    for body in [
        json!({ "marketId": id, "outcomeIndex": 0, "amount": "10.0", "side": "buy" }).to_string(),
        json!({ "marketId": id, "outcomeIndex": 0, "amount": "10.000000", "side": "buy", "metadata": {} })
            .to_string(),
        format!(
            "{{ \"side\":\"buy\",\n\"amount\":\"10\", \"outcomeIndex\":0, \"marketId\":\"{id}\", \"amountType\":\"usdc\" }}"
        ),
    ] {
        let replay = client.call("POST", "/v1/trades").raw_json(body).idempotent("k").await.expect(201);
        assert_eq!(replay["trade"]["id"], trade["id"]);
        assert_eq!(replay["trade"]["amount"], "10");
    }
}

#[tokio::test]
async fn requests_are_equal_despite_metadata_order() {
    let Scene { client, market, .. } = Scene::new().await;
    let id = market.id;
    let body = |metadata: &str| {
        format!(
            r#"{{"marketId":"{id}","outcomeIndex":0,"amount":"10","side":"buy","metadata":{{{metadata}}}}}"#
        )
    };
    let post = |metadata: &str| client.call("POST", "/v1/trades").raw_json(body(metadata)).idempotent("k");
    let trade = post(r#""a":"1","b":"2""#).await.created();
    assert_eq!(post(r#""b":"2","a":"1""#).await.expect(201)["trade"], trade);
    post(r#""b":"1","a":"2""#).await.refused(ErrorCode::IdempotencyKeyConflict);
}

#[tokio::test]
async fn another_request_with_a_used_key_is_a_conflict() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "10").idempotent("k").await.created();
    for other in [
        client.buy(market, 0, "10.000001"),
        client.buy(market, 1, "10"),
        client.sell(market, 0, "10"),
        client.buy(market, 0, "10").with("metadata", json!({ "a": "b" })),
        client.buy(market, 0, "10").with("maxSlippageBps", 100),
        client.buy(market, 0, "10").with("marketId", "unknown"),
        client.buy(market, 0, "0"),
    ] {
        let extensions = assert_refused(&app, other.idempotent("k"), ErrorCode::IdempotencyKeyConflict).await;
        assert_eq!(extensions["tradeId"], trade["id"]);
    }
}

#[tokio::test]
async fn another_request_with_a_used_client_request_id_is_a_conflict() {
    let Scene { app, client, market, .. } = Scene::new().await;
    client.buy(market, 0, "10").with("clientRequestId", "mine").await.created();
    let other = client.buy(market, 0, "11").with("clientRequestId", "mine");
    assert_refused(&app, other, ErrorCode::IdempotencyKeyConflict).await;
}

#[tokio::test]
async fn a_key_and_a_client_request_id_of_different_trades_are_a_conflict() {
    let Scene { app, client, market, .. } = Scene::new().await;
    client.buy(market, 0, "10").idempotent("k").await.created();
    client.buy(market, 0, "10").with("clientRequestId", "mine").await.created();
    let both = client.buy(market, 0, "10").idempotent("k").with("clientRequestId", "mine");
    assert_refused(&app, both, ErrorCode::ClientRequestIdConflict).await;
}

#[tokio::test]
async fn keys_belong_to_their_user() {
    let scene = Scene::new().await;
    let bob = scene.bob().await;
    let call = |client: &http_testkit::Client<http_testkit::Keyed>| {
        client.buy(scene.market, 0, "10").idempotent("k").with("clientRequestId", "mine")
    };
    let (ours, theirs) = (call(&scene.client).await.created(), call(&bob).await.created());
    assert_ne!(ours["id"], theirs["id"]);
}

#[tokio::test]
async fn simultaneous_equal_requests_create_one_trade_and_all_get_it() {
    let scene = Scene::new().await;
    let calls = (0..20).map(|_| scene.client.buy(scene.market, 0, "10").idempotent("k").send());
    let answers = join_all(calls.map(tokio::spawn)).await;
    let bodies: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().expect(201)).collect();
    let first = bodies.iter().filter(|body| body["_meta"]["idempotent"] == false).count();
    assert_eq!(first, 1);
    assert!(bodies.iter().all(|body| body["trade"] == bodies[0]["trade"]));
    assert_eq!(ids(&scene.client.get("/v1/trades").await.ok()).len(), 1);
}

/// The key belongs to another request whose trade is no longer known. Another process stored it
/// while this request was being checked, and it expired before this request was written.
#[tokio::test]
async fn a_taken_key_without_a_known_trade_is_a_conflict_that_can_be_retried() {
    let Scene { app, client, key, market, .. } = Scene::new().await;
    let other = app.http_with(|state| state.ctx = app.ctx_of_another_process()).with(&key);
    let held = app.faults.hold("eth_call");
    let late = tokio::spawn(client.buy(market, 0, "10").idempotent("k").send());
    held.reached().await;
    let first = other.buy(market, 0, "10").idempotent("k").await.created();
    app.clock.advance(app.ctx.config.idempotency_ms);
    held.release();
    let answer = late.await.unwrap();
    let problem = answer.refused(ErrorCode::IdempotencyKeyConflict);
    let expected = json!({ "reason": "in_progress", "submission": "unknown" });
    assert_eq!(problem["extensions"], expected, "\n{answer}");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(ids(&client.get("/v1/trades").await.ok()), [first["id"].as_str().unwrap()]);
}
