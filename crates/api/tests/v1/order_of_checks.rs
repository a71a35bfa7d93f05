//! The documented order of checks: if a request has several errors, the first check reports.

use app::keys::{IssueKey, revoke};
use domain::ErrorCode;
use domain::ids::MarketId;
use domain::key::{Scope, Scopes, Tier};
use http_testkit::ServeHttp;
use serde_json::json;
use testkit::{TestApp, TestKey, TestMarket, key_of};

use crate::scene::{Scene, assert_refused};

async fn key_with(app: &TestApp, change: impl FnOnce(&mut IssueKey)) -> TestKey {
    let user = app.user("grace").await;
    let mut wanted = key_of(&user, Tier::Mm);
    wanted.ip_allowlist = "192.0.2.1".parse().unwrap();
    wanted.scopes = Some(Scopes::of(&[Scope::MarketsRead]));
    change(&mut wanted);
    app.issue(wanted).await.unwrap()
}

#[tokio::test]
async fn route_and_method_are_checked_before_the_key() {
    let http = TestApp::new().await.http();
    http.anonymous().get("/v1/nothing").await.refused(ErrorCode::ResourceNotFound);
    http.anonymous().call("DELETE", "/v1/trades").await.refused(ErrorCode::MethodNotAllowed);
}

#[tokio::test]
async fn key_status_address_and_scope_are_checked_in_this_order() {
    let app = TestApp::new().await;
    let http = app.http();
    let post = |key: &TestKey| http.with(key).trade(json!({}));

    let expires_at = Some(app.ctx.now().plus_ms(1));
    let both = key_with(&app, |key| key.expires_at = expires_at).await;
    let expired = key_with(&app, |key| key.expires_at = expires_at).await;
    let far = key_with(&app, |_| ()).await;
    let near = key_with(&app, |key| key.ip_allowlist = Default::default()).await;
    app.clock.advance(1);
    revoke(&app.ctx, both.caller.key.id).await.unwrap();

    assert_refused(&app, post(&both), ErrorCode::ApiKeyRevoked).await;
    assert_refused(&app, post(&expired), ErrorCode::ApiKeyExpired).await;
    assert_refused(&app, post(&far), ErrorCode::IpNotAllowed).await;
    assert_refused(&app, post(&near), ErrorCode::InsufficientScope).await;
}

/// Each row fixes the error of the row before it, and keeps all later ones.
#[tokio::test]
async fn the_eight_checks_of_a_caller_are_in_their_documented_order() {
    let app = TestApp::new().await;
    let http = app.http();
    let expires_at = Some(app.ctx.now().plus_ms(1));
    let revoked = key_with(&app, |key| key.expires_at = expires_at).await;
    let expired = key_with(&app, |key| key.expires_at = expires_at).await;
    let far = key_with(&app, |_| ()).await;
    let near = key_with(&app, |key| key.ip_allowlist = Default::default()).await;
    app.clock.advance(1);
    revoke(&app.ctx, revoked.caller.key.id).await.unwrap();
    let mut elsewhere = app.ctx_of_another_process();
    elsewhere.config = std::sync::Arc::new(app::Config {
        environment: domain::key::Environment::Live,
        ..app.ctx.config.as_ref().clone()
    });
    let live = app::keys::issue(&elsewhere, key_of(&app.user("live").await, Tier::Mm)).await.unwrap();
    let unknown = format!("service_test_{}", "a".repeat(32));
    let signature = |key: &TestKey| {
        let request = domain::signature::SignedRequest { method: "POST", path: "/v1/trades", body: b"{" };
        request.sign(&key.plaintext, app.ctx.now())
    };
    let wrong = "t=1,v1=x".to_owned();
    for (key, signature, code) in [
        (None, wrong.clone(), ErrorCode::ApiKeyMissing),
        (Some("service_test_x"), wrong.clone(), ErrorCode::ApiKeyMalformed),
        (Some(unknown.as_str()), wrong.clone(), ErrorCode::ApiKeyInvalid),
        (Some(live.plaintext.expose()), wrong.clone(), ErrorCode::ApiKeyInvalid),
        (Some(revoked.plaintext.as_str()), wrong.clone(), ErrorCode::ApiKeyRevoked),
        (Some(expired.plaintext.as_str()), wrong.clone(), ErrorCode::ApiKeyExpired),
        (Some(far.plaintext.as_str()), wrong.clone(), ErrorCode::IpNotAllowed),
        (Some(near.plaintext.as_str()), wrong, ErrorCode::RequestSignatureInvalid),
        // The rate limit is checked at this point.
        (Some(near.plaintext.as_str()), signature(&near), ErrorCode::InsufficientScope),
    ] {
        let call = http.anonymous().call("POST", "/v1/trades").raw_json("{");
        let call = call.header("x-service-signature", signature);
        let call = match key {
            Some(key) => call.header("x-api-key", key),
            None => call,
        };
        assert_refused(&app, call, code).await;
    }
}

#[tokio::test]
async fn the_scope_is_checked_before_the_body() {
    let app = TestApp::new().await;
    let key = key_with(&app, |key| key.ip_allowlist = Default::default()).await;
    let client = app.http().with(&key);
    let large = client.call("POST", "/v1/trades").body(vec![b' '; 70_000]);
    assert_refused(&app, large, ErrorCode::InsufficientScope).await;
    let malformed = client.call("POST", "/v1/trades").raw_json("{").idempotent("a b");
    assert_refused(&app, malformed, ErrorCode::InsufficientScope).await;
}

#[tokio::test]
async fn the_body_is_validated_before_the_replay() {
    let Scene { app, client, market, .. } = Scene::new().await;
    client.buy(market, 0, "10").idempotent("k").await.created();
    let typo = client.buy(market, 0, "10").with("slippage", 1).idempotent("k");
    assert_refused(&app, typo, ErrorCode::ValidationFailed).await;
}

#[tokio::test]
async fn the_replay_is_looked_up_before_market_caps_and_balance() {
    let Scene { app, client, market, .. } = Scene::with("500", Tier::Free).await;
    let trade = client.buy(market, 0, "500").idempotent("k").with("clientRequestId", "n");
    let id = trade.await.created()["id"].clone();
    app.run_workers().await;
    app.freeze(market).await;
    app.run_workers().await;
    let replay = client.buy(market, 0, "500").idempotent("k").await.expect(201);
    assert_eq!(replay["trade"]["id"], id);
    let found = client.buy(market, 0, "500").with("clientRequestId", "n").await.ok();
    assert_eq!(found["trade"]["id"], id);
}

/// Each request fixes the error of the one before it, and keeps all later ones.
#[tokio::test]
async fn validation_market_outcome_account_delegation_caps_and_balance_are_checked_in_this_order() {
    let Scene { app, http, ada, market, .. } = Scene::with("100", Tier::Free).await;
    let poor = http.with(&app.disabled_key(&app.user("poor").await, Tier::Free).await);
    let disabled = http.with(&app.disabled_key(&ada, Tier::Free).await);
    let enabled = http.with(&app.key(&ada, Tier::Free).await);
    let unknown = TestMarket { id: MarketId(app.ctx.uuid()), ..market };
    let frozen = app.market(&["Yes", "No"]).await;
    app.freeze(frozen).await;
    app.run_workers().await;

    assert_refused(&app, poor.buy(unknown, 9, "10000001").with("side", "by"), ErrorCode::ValidationFailed)
        .await;
    assert_refused(&app, poor.buy(unknown, 9, "10000001"), ErrorCode::AmountTooLarge).await;
    assert_refused(&app, poor.buy(unknown, 9, "501"), ErrorCode::MarketNotFound).await;
    assert_refused(&app, poor.buy(frozen, 9, "501"), ErrorCode::MarketNotTradeable).await;
    assert_refused(&app, poor.buy(market, 9, "501"), ErrorCode::OutcomeIndexInvalid).await;
    assert_refused(&app, poor.buy(market, 0, "501"), ErrorCode::SmartAccountNotProvisioned).await;
    assert_refused(&app, disabled.buy(market, 0, "501"), ErrorCode::WalletDelegationNotEnabled).await;
    assert_refused(&app, enabled.buy(market, 0, "501"), ErrorCode::SpendingLimitExceeded).await;
    assert_refused(&app, enabled.buy(market, 0, "101"), ErrorCode::InsufficientBalance).await;
    enabled.buy(market, 0, "100").await.created();
}
