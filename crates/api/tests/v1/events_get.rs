//! `GET /v1/events` as pages.

use domain::ErrorCode;
use domain::key::Tier;
use serde_json::Value;

use crate::scene::{Scene, rows, text};

fn types(body: &Value) -> Vec<String> {
    rows(body).iter().map(|row| text(&row["type"]).to_owned()).collect()
}

fn sequences(body: &Value) -> Vec<u64> {
    rows(body).iter().map(|row| row["sequence"].as_u64().unwrap()).collect()
}

fn cursor(body: &Value) -> &str {
    text(&body["pagination"]["cursor"])
}

#[tokio::test]
async fn the_feed_lists_every_event_of_a_trade_on_request() {
    let scene = Scene::new().await;
    scene
        .settled(scene.client.buy(scene.market, 0, "25").with("metadata", serde_json::json!({ "desk": "a" })))
        .await;
    let answer = scene.client.get("/v1/events?types=*").await;
    assert_eq!(sequences(&answer.ok()), [1, 2, 3, 4]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn the_feed_lists_four_event_types_by_default() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.confirm(&held).await.ok();
    scene.app.run_workers().await;
    let body = scene.client.get("/v1/events").await.ok();
    assert_eq!(types(&body), ["trade.confirmation-required", "trade.completed"]);
    assert_eq!(sequences(&body), [1, 5]);
    let narrowed = scene.client.get("/v1/events?types=trade.completed,trade.failed").await.ok();
    assert_eq!(sequences(&narrowed), [5]);
    let others = scene.client.get("/v1/events?types=trade.status-changed").await.ok();
    assert_eq!(sequences(&others), [2, 3, 4]);
    assert!(!answer_holds_the_token(&scene, &held).await);
}

async fn answer_holds_the_token(scene: &Scene, held: &Value) -> bool {
    let all = scene.client.get("/v1/events?types=*").await;
    all.text.contains(text(&held["confirmation"]["token"]))
}

#[tokio::test]
async fn the_cursor_at_the_end_of_the_feed_returns_later_events() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let empty = client.get("/v1/events?types=*").await.ok();
    assert_eq!((rows(&empty).len(), &empty["pagination"]["hasMore"]), (0, &false.into()));
    let mut at = cursor(&empty).to_owned();
    let mut seen = Vec::new();
    for outcome in [0, 1, 0] {
        client.buy(market, outcome, "5").await.created();
        app.run_workers().await;
        loop {
            let body = client.get(&format!("/v1/events?types=*&limit=3&cursor={at}")).await.ok();
            at = cursor(&body).to_owned();
            seen.extend(sequences(&body));
            if body["pagination"]["hasMore"] == false {
                break;
            }
            assert_eq!(rows(&body).len(), 3);
        }
    }
    assert_eq!(seen, (1..=12).collect::<Vec<_>>());
    let again = client.get(&format!("/v1/events?types=*&cursor={at}")).await.ok();
    assert_eq!((rows(&again).len(), cursor(&again)), (0, at.as_str()));
}

#[tokio::test]
async fn a_read_from_the_latest_starts_after_all_existing_events() {
    let Scene { app, client, market, .. } = Scene::new().await;
    client.buy(market, 0, "5").await.created();
    app.run_workers().await;
    let latest = client.get("/v1/events?from=latest").await.ok();
    assert_eq!(rows(&latest).len(), 0);
    client.buy(market, 1, "5").await.created();
    app.run_workers().await;
    let path = format!("/v1/events?cursor={}", cursor(&latest));
    assert_eq!(sequences(&client.get(&path).await.ok()), [8]);
    assert_eq!(sequences(&client.get("/v1/events?from=oldest").await.ok()), [4, 8]);
}

#[tokio::test]
async fn all_keys_of_a_user_read_only_that_users_feed() {
    let scene = Scene::new().await;
    let other = scene.http.with(&scene.app.key(&scene.ada, Tier::Mm).await);
    scene.settled(scene.client.buy(scene.market, 0, "5")).await;
    let body = other.get("/v1/events").await.ok();
    assert_eq!(types(&body), ["trade.completed"]);
    assert_eq!(body["data"][0]["apiKeyId"], scene.key.caller.key.id.to_string());
    let bobs = scene.bob().await.get("/v1/events?types=*").await.ok();
    assert_eq!(rows(&bobs).len(), 0);
}

#[tokio::test]
async fn invalid_parameters_of_the_feed_are_rejected() {
    let Scene { client, .. } = Scene::new().await;
    let start = client.get("/v1/events").await.ok();
    let at = cursor(&start);
    for (query, pointers) in [
        ("?types=trade".to_owned(), vec!["/types"]),
        ("?types=*,trade.failed".to_owned(), vec!["/types"]),
        ("?from=now".to_owned(), vec!["/from"]),
        (format!("?from=latest&cursor={at}"), vec!["/from"]),
        ("?cursor=x".to_owned(), vec!["/cursor"]),
        (format!("?types=*&cursor={at}"), vec!["/cursor"]),
        ("?limit=0".to_owned(), vec!["/limit"]),
        ("?since=1".to_owned(), vec!["/since"]),
    ] {
        assert_eq!(client.get(&format!("/v1/events{query}")).await.pointers(), pointers, "{query}");
    }
    // The same types in another order are the same filter.
    let spelled = "types=trade.rejected,trade.failed,trade.completed,trade.confirmation-required";
    client.get(&format!("/v1/events?{spelled}&cursor={at}")).await.ok();
    let of_trades = client.get("/v1/trades").await.ok();
    assert_eq!(of_trades["pagination"]["cursor"], Value::Null);
}

#[tokio::test]
async fn a_deleted_position_is_gone_for_pages_and_streams() {
    const PRUNE: &str = "UPDATE feeds SET pruned_seq = 2";
    let scene = Scene::new().await;
    let start = scene.client.get("/v1/events").await.ok();
    scene.settled(scene.client.buy(scene.market, 0, "5")).await;
    let pruned = scene.app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(PRUNE, &[]))).await;
    assert_eq!(pruned.unwrap(), 1);
    let answer = scene.client.get(&format!("/v1/events?cursor={}", cursor(&start))).await;
    assert_eq!(answer.refused(ErrorCode::CursorExpired)["extensions"]["oldestSequence"], 3);
    insta::assert_snapshot!(answer);
    let streamed =
        scene.client.get("/v1/events").header("accept", "text/event-stream").header("last-event-id", "1");
    streamed.await.refused(ErrorCode::CursorExpired);
}
