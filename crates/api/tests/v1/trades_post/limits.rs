//! Spending limits of a key.

use domain::ErrorCode;
use domain::Usdc;
use domain::key::{LimitOverrides, Tier};
use domain::time::DAY_MS;

use crate::scene::{Scene, assert_refused};

#[tokio::test]
async fn a_trade_can_equal_the_cap_per_trade() {
    let Scene { app, client, market, .. } = Scene::with("10000", Tier::Free).await;
    let answer = client.buy(market, 0, "500.000001").await;
    answer.refused(ErrorCode::SpendingLimitExceeded);
    insta::assert_snapshot!(answer);
    let extensions =
        assert_refused(&app, client.buy(market, 0, "501"), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(extensions["cap"], "per_trade");
    client.buy(market, 0, "500").await.created();
}

#[tokio::test]
async fn the_cap_per_trade_also_limits_sales() {
    let scene = Scene::with("10000", Tier::Free).await;
    let Scene { app, http, ada, market, .. } = &scene;
    let large = http.with(&app.key(ada, Tier::Mm).await);
    large.buy(*market, 0, "2000").await.created();
    app.run_workers().await;
    let sale = scene.client.sell(*market, 0, "500.000001");
    let extensions = assert_refused(app, sale, ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(extensions["cap"], "per_trade");
    scene.client.sell(*market, 0, "500").await.created();
}

#[tokio::test]
async fn the_daily_cap_counts_the_buys_of_the_last_24_hours() {
    let scene = Scene::with("10000", Tier::Free).await;
    let Scene { app, client, market, .. } = &scene;
    scene.settled(client.buy(*market, 0, "500")).await;
    scene.settled(client.buy(*market, 0, "500")).await;
    let more = || client.buy(*market, 0, "0.000002");
    let extensions = assert_refused(app, more(), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(extensions["cap"], "daily_volume");
    // Sales do not count towards the cap and do not free any of it.
    scene.settled(client.sell(*market, 0, "400")).await;
    assert_refused(app, more(), ErrorCode::SpendingLimitExceeded).await;
    app.advance_ms(DAY_MS - 1).await;
    assert_refused(app, more(), ErrorCode::SpendingLimitExceeded).await;
    app.advance_ms(1).await;
    more().await.created();
}

#[tokio::test]
async fn a_rejected_trade_releases_its_part_of_the_cap() {
    let Scene { app, client, market, .. } = Scene::with("10000", Tier::Free).await;
    client.buy(market, 0, "500").await.created();
    client.buy(market, 0, "500").await.created();
    assert_refused(&app, client.buy(market, 0, "1"), ErrorCode::SpendingLimitExceeded).await;
    app.freeze(market).await;
    app.run_workers().await;
    app.unfreeze(market).await;
    app.run_workers().await;
    client.buy(market, 0, "500").await.created();
}

#[tokio::test]
async fn limits_of_a_key_override_those_of_its_tier() {
    let Scene { app, http, ada, market, .. } = Scene::new().await;
    let (per_trade, daily) = (Some(Usdc::from_whole(10)), Some(Usdc::from_whole(15)));
    let limits = LimitOverrides { per_trade, daily, ..LimitOverrides::default() };
    let client = http.with(&app.key_with(&ada, Tier::Enterprise, limits).await);
    let extensions =
        assert_refused(&app, client.buy(market, 0, "10.1"), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(extensions["cap"], "per_trade");
    client.buy(market, 0, "10").await.created();
    let extensions =
        assert_refused(&app, client.buy(market, 0, "5.1"), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(extensions["cap"], "daily_volume");
    client.buy(market, 0, "5").await.created();
}
