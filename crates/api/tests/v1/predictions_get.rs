//! `GET /v1/markets/{id}/predictions`.

use domain::ErrorCode;
use serde_json::Value;

use crate::scene::{Scene, ids, rows};

async fn of(scene: &Scene, query: &str) -> Value {
    scene.client.get(&format!("/v1/markets/{}/predictions{query}", scene.market.id)).await.ok()
}

#[tokio::test]
async fn predictions_include_trades_made_directly_on_chain() {
    let scene = Scene::new().await;
    let tagged =
        scene.client.buy(scene.market, 0, "25").with("metadata", serde_json::json!({ "desk": "secret" }));
    scene.settled(tagged.with("clientRequestId", "secret")).await;
    scene.app.advance_ms(10_000).await;
    scene.app.stranger_buys(scene.market, 1, "40").await;
    scene.app.run_workers().await;
    let answer = scene.client.get(&format!("/v1/markets/{}/predictions", scene.market.id)).await;
    assert_eq!(ids(&answer.ok()).len(), 2);
    assert!(!answer.text.contains("secret"), "{answer}");
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn predictions_are_filtered_by_outcome_and_side() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "25")).await;
    scene.settled(scene.client.buy(scene.market, 1, "15")).await;
    scene.settled(scene.client.sell(scene.market, 0, "5")).await;
    for (query, expected) in [
        ("", vec![(0, "sell"), (1, "buy"), (0, "buy")]),
        ("?outcomeIndex=0", vec![(0, "sell"), (0, "buy")]),
        ("?outcomeIndex=1", vec![(1, "buy")]),
        ("?side=sell", vec![(0, "sell")]),
        ("?side=buy&outcomeIndex=0", vec![(0, "buy")]),
        ("?side=sell&outcomeIndex=1", vec![]),
    ] {
        let body = of(&scene, query).await;
        let seen: Vec<_> = rows(&body)
            .iter()
            .map(|row| (row["outcomeIndex"].as_i64().unwrap(), row["side"].as_str().unwrap().to_owned()))
            .collect();
        let expected: Vec<_> = expected.into_iter().map(|(index, side)| (index, side.to_owned())).collect();
        assert_eq!(seen, expected, "{query}");
    }
}

#[tokio::test]
async fn invalid_filters_are_rejected() {
    let scene = Scene::new().await;
    for (query, pointers) in [
        ("?side=hold", vec!["/side"]),
        ("?outcomeIndex=first", vec!["/outcomeIndex"]),
        ("?status=OPEN", vec!["/status"]),
        ("?side=buy&side=buy", vec!["/side"]),
    ] {
        let path = format!("/v1/markets/{}/predictions{query}", scene.market.id);
        assert_eq!(scene.client.get(&path).await.pointers(), pointers, "{query}");
    }
    for index in ["2", "-1", "256"] {
        let path = format!("/v1/markets/{}/predictions?outcomeIndex={index}", scene.market.id);
        scene.client.get(&path).await.refused(ErrorCode::OutcomeIndexInvalid);
    }
}

#[tokio::test]
async fn a_market_without_trades_has_no_predictions() {
    let scene = Scene::new().await;
    let body = of(&scene, "").await;
    assert_eq!(body["data"], serde_json::json!([]));
    assert_eq!(body["pagination"], serde_json::json!({ "cursor": null, "hasMore": false, "limit": 50 }));
}
