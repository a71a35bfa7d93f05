//! `GET /v1/trades/{id}`.

use domain::ErrorCode;
use domain::key::Tier;
use http_testkit::Answer;

use crate::scene::{Scene, text};

#[tokio::test]
async fn a_completed_trade_shows_its_amounts_and_status_history() {
    let scene = Scene::new().await;
    let call =
        scene.client.buy(scene.market, 0, "25.00").with("metadata", serde_json::json!({ "desk": "7" }));
    let id = call.with("clientRequestId", "mine:1").await.created()["id"].clone();
    scene.app.advance_ms(2_000).await;
    scene.app.run_workers().await;
    let answer = scene.client.get(&format!("/v1/trades/{}", text(&id))).await;
    let body = answer.ok();
    assert_eq!(body["trade"], body["data"]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_rejected_trade_shows_its_reason() {
    let scene = Scene::new().await;
    let trade = scene.client.buy(scene.market, 0, "25").await.created();
    scene.app.freeze(scene.market).await;
    scene.app.advance_ms(1_000).await;
    scene.app.run_workers().await;
    let answer = scene.client.get(&format!("/v1/trades/{}", text(&trade["id"]))).await;
    assert_eq!(answer.ok()["trade"]["errorCode"], "market_paused");
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn every_key_of_a_user_reads_the_users_trades() {
    let scene = Scene::new().await;
    let trade = scene.client.buy(scene.market, 0, "25").await.created();
    let second = scene.http.with(&scene.app.disabled_key(&scene.ada, Tier::Mm).await);
    let path = format!("/v1/trades/{}", text(&trade["id"]));
    assert_eq!(second.get(&path).await.ok()["trade"], trade);
}

/// Returns a response without the parts that differ in every response.
fn without_its_own(answer: &Answer, id: &str) -> String {
    let request_id = answer.header("x-request-id").unwrap();
    // The length depends on the id in `instance`, and the rate limiter counts every response.
    let own = |name: &str| name == "content-length" || name.contains("ratelimit");
    let headers = answer.headers.iter().filter(|(name, _)| !own(name.as_str()));
    let mut headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {value:?}")).collect();
    headers.sort_unstable();
    let text = format!("{} {} {}", answer.status, headers.join("\n"), answer.text);
    text.replace(request_id, "<request>").replace(id, "<id>")
}

#[tokio::test]
async fn trades_of_others_unknown_trades_and_malformed_ids_get_the_same_404() {
    let scene = Scene::new().await;
    let theirs = scene.client.buy(scene.market, 0, "25").await.created()["id"].clone();
    let bob = scene.bob().await;
    let mut seen = Vec::new();
    for id in [text(&theirs), "018f0000-0000-7000-8000-000000000001", "7", "%20"] {
        let answer = bob.get(&format!("/v1/trades/{id}")).await;
        answer.refused(ErrorCode::ResourceNotFound);
        seen.push(without_its_own(&answer, id));
    }
    assert!(seen.iter().all(|answer| *answer == seen[0]), "{seen:#?}");
}
