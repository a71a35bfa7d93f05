//! `GET /v1/markets/{id}`.

use domain::ErrorCode;
use domain::ids::MarketId;
use domain::time::DAY_MS;
use testkit::{Fault, market_of};

use crate::scene::Scene;

#[tokio::test]
async fn a_traded_market_shows_its_state_on_chain() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 1, "123.456789")).await;
    let answer = scene.client.get(&format!("/v1/markets/{}", scene.market.id)).await;
    let body = answer.ok();
    assert_eq!(body["market"], body["data"]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_resolved_market_shows_its_payouts() {
    let scene = Scene::new().await;
    scene.app.advance_ms(5_000).await;
    scene.app.resolve(scene.market, 1).await;
    scene.app.run_workers().await;
    let market = &scene.client.get(&format!("/v1/markets/{}", scene.market.id)).await.ok()["market"];
    assert_eq!(market["status"], "RESOLVED");
    assert_eq!(market["resolution"]["outcomeIndex"], 1);
    assert_eq!(market["resolution"]["payouts"], serde_json::json!(["0", "1000000000000000000"]));
    assert!(market["resolution"]["txHash"].is_string() && market["resolvedAt"].is_string());
    assert_eq!(market["outcomes"][1]["price"], 1.0);
}

#[tokio::test]
async fn a_market_past_its_end_reads_frozen() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let path = format!("/v1/markets/{}", market.id);
    app.clock.advance(30 * DAY_MS - 1);
    assert_eq!(client.get(&path).await.ok()["market"]["status"], "OPEN");
    app.clock.advance(1);
    assert_eq!(client.get(&path).await.ok()["market"]["status"], "FROZEN");
}

#[tokio::test]
async fn unknown_and_malformed_ids_and_markets_that_are_not_on_chain_are_not_found() {
    let Scene { app, client, .. } = Scene::new().await;
    app.faults.every_send(Fault::LostRequest);
    let id = MarketId(app.ctx.uuid());
    let new = app::markets::NewMarket { id: Some(id), ..market_of(&app, &["A", "B"]) };
    app::markets::create(&app.ctx, &app.roles.resolver, new).await.unwrap_err();
    for id in [
        MarketId(app.ctx.uuid()).to_string(),
        id.to_string(),
        "1".into(),
        "%ff".into(),
        "%00".into(),
        "%2F".into(),
    ] {
        for path in ["", "/predictions", "/quote?outcomeIndex=0&action=buy&amount=1"] {
            let answer = client.get(&format!("/v1/markets/{id}{path}")).await;
            answer.refused(ErrorCode::MarketNotFound);
        }
    }
}
