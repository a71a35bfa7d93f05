//! `GET /v1/traces/{correlationId}`.

use domain::ErrorCode;
use http_testkit::{Answer, Client, Keyed};
use serde_json::Value;

use crate::scene::{Scene, text};

async fn trace(client: &Client<Keyed>, trade: &Value) -> Answer {
    client.get(&format!("/v1/traces/{}", text(&trade["correlationId"]))).await
}

fn kinds(body: &Value) -> Vec<&str> {
    body["trace"]["events"].as_array().unwrap().iter().map(|event| text(&event["type"])).collect()
}

#[tokio::test]
async fn a_trace_covers_a_completed_trade_from_its_intent_to_its_block() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.app.advance_ms(30_000).await;
    scene.confirm(&held).await.ok();
    scene.app.advance_ms(1_000).await;
    scene.app.run_workers().await;
    let answer = trace(&scene.client, &held).await;
    let body = answer.ok();
    assert_eq!((&body["trace"], &body["trace"]["status"]), (&body["data"], &"completed".into()));
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_trace_of_a_rejected_trade_ends_with_its_reason() {
    let scene = Scene::new().await;
    let trade = scene.client.buy(scene.market, 0, "25").await.created();
    scene.app.freeze(scene.market).await;
    scene.app.advance_ms(1_000).await;
    scene.app.run_workers().await;
    let answer = trace(&scene.client, &trade).await;
    assert_eq!(answer.ok()["trace"]["status"], "rejected");
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_trace_of_an_unconfirmed_trade_ends_with_its_expiry() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.app.advance_ms(scene.app.ctx.config.confirmation_window_ms).await;
    scene.app.run_workers().await;
    let answer = trace(&scene.client, &held).await;
    assert_eq!(answer.ok()["trace"]["status"], "failed");
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_trace_of_a_running_trade_ends_with_its_current_step() {
    let scene = Scene::new().await;
    let trade = scene.client.buy(scene.market, 0, "25").await.created();
    let body = trace_of(&scene, &trade).await;
    assert_eq!(kinds(&body), ["trade.accepted", "funds.reserved"]);
    assert_eq!((&body["trace"]["status"], &body["trace"]["endedAt"]), (&"pending".into(), &Value::Null));
    scene.app.run_workers().await;
    let body = trace_of(&scene, &trade).await;
    assert_eq!(kinds(&body).last(), Some(&"trade.completed"));
    let ended = body["trace"]["events"].as_array().unwrap().last().unwrap();
    assert_eq!(body["trace"]["endedAt"], ended["at"]);
}

async fn trace_of(scene: &Scene, trade: &Value) -> Value {
    trace(&scene.client, trade).await.ok()
}

#[tokio::test]
async fn a_trace_id_of_two_trades_shows_the_newer_one() {
    let scene = Scene::new().await;
    let named = "4bf92f3577b34da6a3ce929d0e0e4736";
    let buy = || {
        let parent = format!("00-{named}-00f067aa0ba902b7-01");
        scene.client.buy(scene.market, 0, "1").header("traceparent", parent)
    };
    let (older, newer) = (buy().await.created(), buy().await.created());
    let found = scene.client.get(&format!("/v1/traces/{named}")).await.ok();
    assert_eq!((&found["trace"]["tradeId"], &found["trace"]["correlationId"]), (&newer["id"], &named.into()));
    let own = text(&older["id"]).replace('-', "");
    let found = scene.client.get(&format!("/v1/traces/{own}")).await.ok();
    assert_eq!((&found["trace"]["tradeId"], &found["trace"]["correlationId"]), (&older["id"], &named.into()));
}

#[tokio::test]
async fn traces_of_others_unknown_traces_and_malformed_ids_are_not_found() {
    let scene = Scene::new().await;
    let trade = scene.client.buy(scene.market, 0, "25").await.created();
    let bob = scene.bob().await;
    let theirs = text(&trade["correlationId"]);
    for id in [theirs, &"1".repeat(32), &"0".repeat(32), text(&trade["id"]), "7", "%20", &"A".repeat(32)] {
        let problem = bob.get(&format!("/v1/traces/{id}")).await.refused(ErrorCode::ResourceNotFound);
        assert_eq!(problem.get("extensions").and_then(|e| e.get("tradeId")), None);
    }
    let query = format!("/v1/traces/{theirs}?limit=1");
    assert_eq!(scene.client.get(&query).await.pointers(), ["/limit"]);
}
