//! `POST /v1/trades`.

mod bodies;
mod gate;
mod idempotency;
mod idempotency_key;
mod limits;
mod refusals;

use http_testkit::ServeHttp;
use serde_json::json;
use testkit::TestApp;

use crate::scene::{Scene, assert_refused};
use domain::key::Tier;
use domain::{ErrorCode, Usdc};

#[tokio::test]
async fn a_new_trade_is_returned_as_pending() {
    let Scene { client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "25.00").with("metadata", json!({ "strategy": "a.b", "desk": "7" }));
    let answer = trade.with("clientRequestId", "mine:1").await;
    answer.created();
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn optional_members_may_be_null() {
    let Scene { client, market, .. } = Scene::new().await;
    let mut call = client.buy(market, 0, "25");
    for member in
        ["metadata", "clientRequestId", "minTokensOut", "maxSlippageBps", "deadline", "amountType", "dryRun"]
    {
        call = call.with(member, serde_json::Value::Null);
    }
    assert_eq!(call.await.created()["metadata"], json!({}));
}

#[tokio::test]
async fn a_trade_has_the_trace_of_the_caller() {
    let Scene { client, market, .. } = Scene::new().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let named = client.buy(market, 0, "1").header("traceparent", parent).await.created();
    assert_eq!(named["correlationId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let unnamed = client.buy(market, 0, "1").header("traceparent", "nonsense").await.created();
    assert_eq!(unnamed["correlationId"].as_str().map(str::len), Some(32));
}

#[tokio::test]
async fn a_dry_run_makes_every_check_and_creates_nothing() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let before = app.rows().await;
    let call =
        client.buy(market, 0, "25").with("dryRun", true).with("clientRequestId", "mine").idempotent("k");
    let answer = call.await;
    let body = answer.ok();
    assert_eq!(body["dryRun"], body["data"]);
    insta::assert_snapshot!(answer);
    assert_eq!(app.rows().await, before);
    // A dry run uses up neither the key nor the id.
    client.buy(market, 0, "26").with("clientRequestId", "mine").idempotent("k").await.created();

    let dear = client.buy(market, 0, "9975").with("dryRun", true);
    assert_refused(&app, dear, ErrorCode::InsufficientBalance).await;
    client.buy(market, 0, "9974").with("dryRun", true).await.ok();
}

#[tokio::test]
async fn a_trade_shows_its_slippage_limit() {
    let app = TestApp::with().default_slippage_bps(150).start().await;
    let ada = app.user("ada").funded("1000").await;
    let client = app.http().with(&app.key(&ada, Tier::Mm).await);
    let market = app.market(&["Yes", "No"]).await;
    let created = client.buy(market, 0, "10").await.created();
    assert_eq!(created["maxSlippageBps"], 150);
    let own = client.buy(market, 0, "10").with("maxSlippageBps", 70).await.created();
    assert_eq!(own["maxSlippageBps"], 70);
    let by_amount = client.buy(market, 0, "10").with("minTokensOut", "1").await.created();
    assert_eq!(by_amount["maxSlippageBps"], json!(null));
    let dry = client.buy(market, 0, "10").with("dryRun", true).await.ok();
    assert_eq!(dry["dryRun"]["maxSlippageBps"], 150);
    app.run_workers().await;
    let path = format!("/v1/trades/{}", created["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.ok()["trade"]["maxSlippageBps"], 150);
}

#[tokio::test]
async fn trades_and_quotes_below_the_minimum_get_the_minimum() {
    let app = TestApp::with().minimum(Usdc::from_atomic(10_000)).start().await;
    let ada = app.user("ada").funded("1000").await;
    let client = app.http().with(&app.key(&ada, Tier::Mm).await);
    let market = app.market(&["Yes", "No"]).await;
    let trade = client.buy(market, 0, "0.009999");
    assert_eq!(assert_refused(&app, trade, ErrorCode::AmountTooSmall).await["minimum"], "10000");
    let quote = client.quote(market, 0, "buy", "9999").await.refused(ErrorCode::AmountTooSmall);
    assert_eq!(quote["extensions"]["minimum"], "10000");
    client.buy(market, 0, "0.01").await.created();
}

#[tokio::test]
async fn a_trade_never_executes_beyond_its_price_bound() {
    let scene = Scene::new().await;
    let Scene { app, client, market, .. } = &scene;
    let quote = client.quote(*market, 0, "buy", "25000000").await.ok();
    let least: u128 = quote["quote"]["tokensOut"].as_str().unwrap().parse().unwrap();
    let bounded = |least: u128| client.buy(*market, 0, "25").with("minTokensOut", least.to_string());
    assert_refused(app, bounded(least + 1), ErrorCode::SlippageExceeded).await;
    let trade = scene.settled(bounded(least)).await;
    assert_eq!(trade["tokensOut"], least.to_string());

    let moved = client.buy(*market, 0, "25").with("maxSlippageBps", 0).await.created();
    app.stranger_buys(*market, 0, "1").await;
    app.run_workers().await;
    let path = format!("/v1/trades/{}", moved["id"].as_str().unwrap());
    let moved = &client.get(&path).await.ok()["trade"];
    assert_eq!((&moved["status"], &moved["errorCode"]), (&"rejected".into(), &"price_moved".into()));
}
