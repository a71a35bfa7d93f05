//! A market is frozen, unfrozen and ended.

use domain::ErrorCode;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, text};

async fn market(scene: &Scene) -> Value {
    scene.client.get(&format!("/v1/markets/{}", scene.market.id)).await.ok()["market"].take()
}

#[tokio::test]
async fn a_frozen_market_rejects_trades_until_it_is_unfrozen() {
    let scene = Scene::new().await;
    let buy = || scene.client.buy(scene.market, 0, "10");
    scene.settled(buy()).await;
    scene.app.advance_ms(1_000).await;
    scene.app.freeze(scene.market).await;
    scene.app.run_workers().await;
    let frozen = market(&scene).await;
    assert_eq!(frozen["status"], "FROZEN");
    assert!(frozen["frozenAt"].is_string());
    assert_refused(&scene.app, buy(), ErrorCode::MarketNotTradeable).await;
    assert_refused(&scene.app, scene.client.sell_all(scene.market, 0), ErrorCode::MarketNotTradeable).await;
    assert_eq!(scene.positions().await[0]["marketStatus"], "FROZEN");

    scene.app.unfreeze(scene.market).await;
    scene.app.run_workers().await;
    let open = market(&scene).await;
    assert_eq!((&open["status"], &open["frozenAt"]), (&"OPEN".into(), &Value::Null));
    scene.settled(buy()).await;
    scene.settled(scene.client.sell_all(scene.market, 0)).await;
    scene.app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn in_a_resolved_market_only_the_winning_position_is_claimable() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    scene.settled(scene.client.buy(scene.market, 1, "40")).await;
    scene.app.resolve(scene.market, 1).await;
    scene.app.run_workers().await;

    let [no, yes] = scene.positions().await.try_into().unwrap();
    // One USDC per whole token, rounded down to atomic units.
    let tokens: u128 = text(&yes["tokens"]).parse().unwrap();
    let pays = (tokens / 1_000_000_000_000).to_string();
    assert_eq!(
        (&yes["claimable"], &yes["claimableUsdc"], &yes["value"]),
        (&true.into(), &json!(pays), &json!(pays))
    );
    assert_eq!((&yes["marketStatus"], &yes["currentPrice"]), (&"RESOLVED".into(), &json!(1.0)));
    assert_eq!(
        (&no["claimable"], &no["claimableUsdc"], &no["value"]),
        (&false.into(), &json!("0"), &json!("0"))
    );
    let portfolio = scene.portfolio().await;
    assert_eq!((&portfolio["claimableUsdc"], &portfolio["positionsValue"]), (&json!(pays), &json!(pays)));
    assert_eq!(market(&scene).await["resolution"]["outcomeIndex"], 1);
}

#[tokio::test]
async fn in_a_cancelled_market_every_position_pays_its_reference_price() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    scene.settled(scene.client.buy(scene.market, 1, "40")).await;
    scene.app.cancel(scene.market).await;
    scene.app.run_workers().await;
    let positions = scene.positions().await;
    let claimable: Vec<_> = positions.iter().map(|position| text(&position["claimableUsdc"])).collect();
    // The opening price of half a USDC per whole token, rounded down to atomic units.
    let half = |position: &Value| {
        let tokens: u128 = text(&position["tokens"]).parse().unwrap();
        (tokens / 2 / 1_000_000_000_000).to_string()
    };
    assert_eq!(claimable, positions.iter().map(half).collect::<Vec<_>>());
    assert_eq!(market(&scene).await["status"], "CANCELLED");
}
