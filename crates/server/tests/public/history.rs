//! `GET /api/markets/{id}/history`.

use crate::scene::{Scene, ok};

#[tokio::test]
async fn a_markets_history_is_candles_in_seconds_and_cents() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/api/markets/{}/history?interval=1h", scene.rain.id)).await;
    ok(&answer);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn one_outcome_and_a_span_can_be_asked_for() {
    let scene = Scene::new().await;
    let path = format!("/api/markets/{}/history", scene.rain.id);
    let start = testkit::START.s();
    let body = scene.ok(&format!("{path}?outcomeIndex=1&interval=1m&from={start}&to={}", start + 600)).await;
    let history = &body["history"];
    assert_eq!(history["outcomes"].as_array().unwrap().len(), 1);
    assert_eq!(history["outcomes"][0]["outcomeIndex"], 1);
    assert_eq!((&history["from"], &history["to"]), (&start.into(), &(start + 600).into()));
    let day = scene.ok(&format!("{path}?range=24h")).await["history"].take();
    assert!(day["to"].as_u64().unwrap() - day["from"].as_u64().unwrap() >= 86_400, "{day}");
    for wrong in ["outcomeIndex=2", "interval=1w", "from=x", "from=9&to=8", "interval=1m&from=0&to=86400000"]
    {
        scene.refused(&format!("{path}?{wrong}"), 400, "INVALID_REQUEST").await;
    }
}
