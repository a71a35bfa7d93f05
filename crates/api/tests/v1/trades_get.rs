//! `GET /v1/trades`.

use serde_json::Value;

use crate::scene::{Scene, ids, text};

/// Creates two completed trades, a rejected one and a pending one, in this order.
async fn four_trades(scene: &Scene) -> [String; 4] {
    let (client, app) = (&scene.client, &scene.app);
    let id = |trade: Value| text(&trade["id"]).to_owned();
    let one = id(scene.settled(client.buy(scene.market, 0, "25").with("clientRequestId", "one")).await);
    app.advance_ms(1_000).await;
    let two = id(scene.settled(client.sell_all(scene.market, 0)).await);
    app.advance_ms(1_000).await;
    let other = app.market(&["A", "B", "C"]).await;
    let three = id(client.buy(other, 2, "25").await.created());
    app.freeze(other).await;
    app.run_workers().await;
    app.advance_ms(1_000).await;
    let four = id(client.buy(scene.market, 1, "5").await.created());
    [one, two, three, four]
}

#[tokio::test]
async fn a_list_shows_the_callers_trades_newest_first() {
    let scene = Scene::new().await;
    four_trades(&scene).await;
    let answer = scene.client.get("/v1/trades").await;
    answer.ok();
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_list_is_filtered_by_statuses_market_and_client_request_id() {
    let scene = Scene::new().await;
    let [one, two, three, four] = &four_trades(&scene).await;
    let market = scene.market.id;
    let found = async |query: &str| ids(&scene.client.get(&format!("/v1/trades?{query}")).await.ok());
    assert_eq!(found("status=completed").await, [two, one].map(String::as_str));
    assert_eq!(found("status=rejected").await, [three.as_str()]);
    assert_eq!(found("status=pending,rejected").await, [four, three].map(String::as_str));
    assert_eq!(found(&format!("marketId={market}")).await, [four, two, one].map(String::as_str));
    assert_eq!(
        found(&format!("marketId={market}&status=completed&clientRequestId=one")).await,
        [one.as_str()]
    );
    assert_eq!(found("clientRequestId=one").await, [one.as_str()]);
    assert!(found("status=failed,validating,executing,pending_confirmation").await.is_empty());
    assert!(found("clientRequestId=One").await.is_empty());
    assert!(found(&format!("marketId={}", domain::ids::MarketId(scene.app.ctx.uuid()))).await.is_empty());
}

#[tokio::test]
async fn a_cursor_accepts_its_statuses_in_any_order() {
    let scene = Scene::new().await;
    four_trades(&scene).await;
    let first = scene.client.get("/v1/trades?status=pending,completed&limit=1").await.ok();
    let cursor = text(&first["pagination"]["cursor"]).to_owned();
    let page = async |query: &str| scene.client.get(&format!("/v1/trades?{query}&cursor={cursor}")).await;
    let same = ids(&page("status=pending,completed").await.ok());
    for query in [
        "status=completed,pending",
        "status=completed,%20pending,completed",
        "limit=5&status=completed,pending",
    ] {
        assert_eq!(ids(&page(query).await.ok()), same, "{query}");
    }
    assert_eq!(page("status=completed").await.pointers(), ["/cursor"]);
}

#[tokio::test]
async fn held_trades_are_listed_without_their_tokens() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.client.buy(scene.market, 0, "1").await.created();
    let answer = scene.client.get("/v1/trades?status=pending_confirmation").await;
    assert_eq!(ids(&answer.ok()), [text(&held["id"])]);
    assert!(!answer.text.contains("ct_") && !answer.text.contains("\"confirmation\""), "{answer}");
}

#[tokio::test]
async fn invalid_filters_are_rejected() {
    let client = Scene::new().await.client;
    let long = format!("clientRequestId={}", "x".repeat(129));
    for (query, pointer) in [
        ("status=done", "/status"),
        ("status=Completed", "/status"),
        ("status=completed,", "/status"),
        ("status=completed&status=failed", "/status"),
        ("marketId=1", "/marketId"),
        ("clientRequestId=a%20b", "/clientRequestId"),
        ("clientRequestId=", "/clientRequestId"),
        ("clientRequestId=%00", "/clientRequestId"),
        ("clientRequestId=one&clientRequestId=two", "/clientRequestId"),
        (&long, "/clientRequestId"),
        ("outcomeIndex=0", "/outcomeIndex"),
        ("userId=1", "/userId"),
    ] {
        assert_eq!(client.get(&format!("/v1/trades?{query}")).await.pointers(), [pointer], "{query}");
    }
}

#[tokio::test]
async fn a_user_sees_only_their_own_trades() {
    let scene = Scene::new().await;
    let trade = scene.client.buy(scene.market, 0, "25").with("clientRequestId", "one").await.created();
    let bob = scene.bob().await;
    for query in
        ["", "?clientRequestId=one", "?status=pending", &format!("?marketId={}", text(&trade["marketId"]))]
    {
        assert!(ids(&bob.get(&format!("/v1/trades{query}")).await.ok()).is_empty(), "{query}");
    }
}
