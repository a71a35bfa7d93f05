//! `POST /v1/account/pause`.

use domain::ErrorCode;
use domain::key::Tier;
use serde_json::json;

use crate::scene::{Scene, assert_invalid, assert_refused, text};

const PATH: &str = "/v1/account/pause";

#[tokio::test]
async fn a_key_stops_its_own_trading_and_still_reads() {
    let scene = Scene::new().await;
    let Scene { app, client, market, .. } = &scene;
    let trade = client.buy(*market, 0, "10").await.created();
    let answer = client.call("POST", PATH).await;
    let body = answer.ok();
    assert_eq!(body["pause"], body["data"]);
    assert_eq!(body["pause"]["apiKeyId"], scene.key.caller.key.id.to_string());
    insta::assert_snapshot!(answer);

    let refusal = client.buy(*market, 0, "10").await;
    let problem = refusal.refused(ErrorCode::ApiKeyPaused);
    assert_eq!(problem["extensions"], json!({ "submission": "not_submitted" }));
    insta::assert_snapshot!("a_trade_with_a_paused_key_is_refused", refusal);
    app.run_workers().await;
    let read = client.get(&format!("/v1/trades/{}", text(&trade["id"]))).await.ok();
    assert_eq!(
        (&read["trade"]["status"], &read["trade"]["errorCode"]),
        (&"rejected".into(), &"delegation_inactive".into())
    );
    client.get("/v1/portfolio").await.ok();
}

#[tokio::test]
async fn a_pause_stops_only_one_key_of_the_user() {
    let scene = Scene::new().await;
    let second = scene.http.with(&scene.app.key(&scene.ada, Tier::Free).await);
    scene.client.call("POST", PATH).await.ok();
    second.buy(scene.market, 0, "1").await.created();
}

#[tokio::test]
async fn a_pause_is_reported_before_errors_in_the_trade() {
    let Scene { app, client, .. } = Scene::new().await;
    client.call("POST", PATH).await.ok();
    assert_refused(&app, client.trade(json!({})), ErrorCode::ApiKeyPaused).await;
}

#[tokio::test]
async fn pausing_again_changes_nothing_and_the_operator_resumes() {
    let Scene { app, client, key, market, .. } = Scene::new().await;
    let first = client.call("POST", PATH).await.ok();
    app.advance_ms(1_000).await;
    let again = client.call("POST", PATH).raw_json("{}").await.ok();
    assert_eq!(first["pause"], again["pause"]);
    app::keys::resume(&app.ctx, key.caller.key.id).await.unwrap();
    client.buy(market, 0, "1").await.created();
}

#[tokio::test]
async fn a_pause_has_no_body_and_no_parameters() {
    let Scene { app, client, market, .. } = Scene::new().await;
    assert_invalid(&app, client.call("POST", PATH).raw_json(r#"{"apiKeyId": "x"}"#), &["/apiKeyId"]).await;
    assert_invalid(&app, client.call("POST", "/v1/account/pause?key=1"), &["/key"]).await;
    assert_refused(&app, client.call("POST", PATH).body("{}"), ErrorCode::UnsupportedMediaType).await;
    client.buy(market, 0, "1").await.created();
}
