//! Kill switches of routes and of trading.

use app::keys::IssueKey;
use app::kill_switches::{Setting, TRADING, set};
use domain::ErrorCode;
use domain::key::{Scope, Scopes, Tier};
use http_testkit::ServeHttp;
use serde_json::json;
use testkit::key_of;

use crate::scene::{Scene, assert_refused};

#[tokio::test]
async fn a_disabled_route_does_not_affect_others() {
    let Scene { app, client, market, .. } = Scene::new().await;
    set(&app.ctx, "GET /v1/markets/{id}", Setting::Off, "ada", None).await.unwrap();
    let path = format!("/v1/markets/{}", market.id);
    let answer = client.get(&path).await;
    answer.refused(ErrorCode::RouteDisabled);
    assert_eq!(
        (answer.header("retry-after"), answer.header("cache-control")),
        (Some("30"), Some("no-store"))
    );
    client.call("HEAD", &path).await;
    client.get("/v1/markets").await.ok();
    client.get(&format!("{path}/predictions")).await.ok();
    client.buy(market, 0, "1").await.created();
    set(&app.ctx, "GET /v1/markets/{id}", Setting::On, "ada", None).await.unwrap();
    client.get(&path).await.ok();
}

#[tokio::test]
async fn a_halt_closes_trading_and_leaves_reads_open() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "1").idempotent("k").await.created();
    set(&app.ctx, TRADING, Setting::Off, "ada", None).await.unwrap();
    assert_refused(&app, client.buy(market, 0, "1"), ErrorCode::ApiTradeProcessingHalted).await;
    let replay = client.buy(market, 0, "1").idempotent("k").await;
    replay.refused(ErrorCode::ApiTradeProcessingHalted);
    assert_eq!(replay.header("retry-after"), Some("30"));
    app.run_workers().await;
    let path = format!("/v1/trades/{}", trade["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.ok()["trade"]["status"], "pending");
    client.quote(market, 0, "buy", "1000000").await.ok();
    set(&app.ctx, TRADING, Setting::On, "ada", None).await.unwrap();
    client.buy(market, 0, "1").await.created();
    app.run_workers().await;
    assert_eq!(client.get(&path).await.ok()["trade"]["status"], "completed");
}

#[tokio::test]
async fn another_process_follows_a_switch_within_a_second() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let ctx = app.ctx_of_another_process();
    let other = app.http_with(|state| state.ctx = ctx.clone()).with(&key);
    set(&app.ctx, "POST /v1/trades", Setting::Off, "ada", None).await.unwrap();
    other.buy(market, 0, "1").await.created();
    app.clock.advance(400);
    app::kill_switches::refresh(&ctx).await.unwrap();
    assert_refused(&app, other.buy(market, 0, "1"), ErrorCode::RouteDisabled).await;
}

#[tokio::test]
async fn a_switch_is_checked_after_the_scope_and_before_the_body() {
    let Scene { app, http, ada, client, .. } = Scene::new().await;
    set(&app.ctx, "POST /v1/trades", Setting::Off, "ada", None).await.unwrap();
    let scopes = Some(Scopes::of(&[Scope::TradesRead]));
    let reader = app.issue(IssueKey { scopes, ..key_of(&ada, Tier::Mm) }).await.unwrap();
    assert_refused(&app, http.with(&reader).trade(json!({})), ErrorCode::InsufficientScope).await;
    let large = client.call("POST", "/v1/trades").body(vec![b' '; 70_000]);
    assert_refused(&app, large, ErrorCode::RouteDisabled).await;
    // The route's own switch takes precedence over the trading halt.
    set(&app.ctx, TRADING, Setting::Off, "ada", None).await.unwrap();
    assert_refused(&app, client.trade(json!({})), ErrorCode::RouteDisabled).await;
}
