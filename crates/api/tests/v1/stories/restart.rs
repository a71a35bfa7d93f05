//! A new process replaces one that died, with the same database and chain.

use http_testkit::ServeHttp;
use serde_json::Value;

use crate::scene::{Scene, ids, text};

/// Returns a body without `_meta`.
fn content(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("_meta").unwrap();
    body
}

#[tokio::test]
async fn a_restart_keeps_all_data_and_finishes_open_trades() {
    let mut scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    scene.app.advance_ms(1_000).await;
    let open = scene.client.buy(scene.market, 1, "40").idempotent("k").await.created();
    let first_page = scene.client.get("/v1/trades?limit=1").await.ok();
    let cursor = text(&first_page["pagination"]["cursor"]).to_owned();
    let paths = [
        "/v1/markets".to_owned(),
        format!("/v1/markets/{}", scene.market.id),
        format!("/v1/markets/{}/predictions", scene.market.id),
        "/v1/trades".to_owned(),
        "/v1/portfolio/positions".to_owned(),
    ];
    let mut before = Vec::new();
    for path in &paths {
        before.push(content(scene.client.get(path).await.ok()));
    }

    scene.app.restart("two").await;
    scene.http = scene.app.http();
    scene.client = scene.http.with(&scene.key);

    for (path, before) in paths.iter().zip(before) {
        assert_eq!(content(scene.client.get(path).await.ok()), before, "{path}");
    }
    let second_page = scene.client.get(&format!("/v1/trades?limit=1&cursor={cursor}")).await.ok();
    assert_eq!(ids(&second_page).len(), 1);
    assert_ne!(ids(&second_page), ids(&first_page));
    let replay = scene.client.buy(scene.market, 1, "40").idempotent("k").await.expect(201);
    assert_eq!(replay["trade"], open);

    scene.app.run_workers().await;
    let done = scene.client.get(&format!("/v1/trades/{}", text(&open["id"]))).await.ok();
    assert_eq!(done["trade"]["status"], "completed");
    assert_eq!(scene.positions().await.len(), 2);
    scene.app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_trade_of_a_process_that_died_after_sending_executes_once() {
    let mut scene = Scene::new().await;
    let trade = scene.client.buy(scene.market, 0, "40").await.created();
    scene.app.faults.next_send(testkit::Fault::LostAnswer);
    // The process dies with this error, so its result does not matter.
    drop(scene.app.workers.try_run(&scene.app.ctx).await);
    scene.app.restart("two").await;
    scene.client = scene.app.http().with(&scene.key);
    scene.app.run_workers().await;
    let done = scene.client.get(&format!("/v1/trades/{}", text(&trade["id"]))).await.ok();
    assert_eq!(done["trade"]["status"], "completed");
    assert_eq!(scene.predictions().await.len(), 1);
    scene.app.assert_ledger_equals_chain().await;
}
