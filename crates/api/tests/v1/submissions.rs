//! Every error of a write states whether the request was submitted, and names the trade if there is
//! one.

use api::v1::router::routes;
use app::keys::{IssueKey, revoke};
use axum::http::Method;
use domain::key::{Scope, Scopes, Tier};
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Usdc};
use http_testkit::{RequestBuilder, ServeHttp};
use serde_json::{Value, json};
use testkit::{Fault, TestApp, TestKey, TestMarket, key_of};

use crate::scene::{Scene, confirm, text};

/// Returns the paths of the write routes, and whether a key must have a scope for each.
fn write_routes() -> impl Iterator<Item = (String, bool)> {
    let routes = routes().filter(|route| route.method == Method::POST);
    routes.map(|route| (route.path.replace("{id}", "x"), route.scope.is_some()))
}

async fn assert_submission(call: RequestBuilder, code: ErrorCode, submission: &str, trade: Option<&Value>) {
    let answer = call.await;
    let problem = answer.refused(code);
    assert_eq!(problem["extensions"]["submission"], submission, "\n{answer}");
    assert_eq!(problem["extensions"].get("tradeId"), trade.map(|trade| &trade["id"]), "\n{answer}");
}

async fn key_with(app: &TestApp, change: impl FnOnce(&mut IssueKey)) -> TestKey {
    let mut wanted = key_of(&app.user("grace").await, Tier::Mm);
    change(&mut wanted);
    app.issue(wanted).await.unwrap()
}

#[tokio::test]
async fn a_rejection_before_the_handler_reports_not_submitted() {
    let app = TestApp::new().await;
    let http = app.http();
    let expires_at = Some(app.ctx.now().plus_ms(1));
    let expired = key_with(&app, |key| key.expires_at = expires_at).await;
    let revoked = key_with(&app, |_| ()).await;
    let far = key_with(&app, |key| key.ip_allowlist = "192.0.2.1".parse().unwrap()).await;
    let reader = key_with(&app, |key| key.scopes = Some(Scopes::of(&[Scope::TradesRead]))).await;
    let fit = key_with(&app, |_| ()).await;
    revoke(&app.ctx, revoked.caller.key.id).await.unwrap();
    app.clock.advance(1);
    let unknown = format!("service_test_{}", "a".repeat(32));
    let routes: Vec<_> = write_routes().collect();
    assert!(routes.len() >= 3);
    for (path, needs_scope) in &routes {
        let call = http.anonymous().call("POST", path);
        assert_submission(call, ErrorCode::ApiKeyMissing, "not_submitted", None).await;
        for (key, code) in [
            ("nonsense", ErrorCode::ApiKeyMalformed),
            (&unknown, ErrorCode::ApiKeyInvalid),
            (&expired.plaintext, ErrorCode::ApiKeyExpired),
            (&revoked.plaintext, ErrorCode::ApiKeyRevoked),
            (&far.plaintext, ErrorCode::IpNotAllowed),
        ] {
            let call = http.with_text(key).call("POST", path);
            assert_submission(call, code, "not_submitted", None).await;
        }
        if *needs_scope {
            let call = http.with(&reader).call("POST", path);
            assert_submission(call, ErrorCode::InsufficientScope, "not_submitted", None).await;
        }
        let client = http.with(&fit);
        let call = client.call("POST", &format!("{path}?nothing=1")).raw_json("{}");
        assert_submission(call, ErrorCode::ValidationFailed, "not_submitted", None).await;
        let call = client.call("POST", path).raw_json(vec![b' '; 70_000]);
        assert_submission(call, ErrorCode::PayloadTooLarge, "not_submitted", None).await;
        let call = client.call("POST", path).raw_json(r#"{"nothing": 1}"#);
        assert_submission(call, ErrorCode::ValidationFailed, "not_submitted", None).await;
        let call = client.call("POST", path).body("{}");
        assert_submission(call, ErrorCode::UnsupportedMediaType, "not_submitted", None).await;
        // Otherwise these failures would lock the address out.
        app.clock.advance(5 * MINUTE_MS);
    }
    app.ctx.store.close().await;
    // Let the cached key row expire, so that it must be read again.
    app.clock.advance(500);
    for (path, _) in &routes {
        // The key could not be looked up, so nothing was started.
        let call = http.with(&fit).call("POST", path);
        assert_submission(call, ErrorCode::DependencyUnavailable, "not_submitted", None).await;
    }
}

#[tokio::test]
async fn a_rejection_at_creation_reports_not_submitted() {
    let scene = Scene::gated().await;
    let Scene { app, http, ada, client, market, .. } = &scene;
    let none = None;
    let frozen = app.market(&["Yes", "No"]).await;
    app.freeze(frozen).await;
    app.run_workers().await;
    let large = app.market_with(&["Yes", "No"], |new| new.liquidity = Usdc::from_whole(50_000)).await;
    let unknown = TestMarket { id: domain::ids::MarketId(app.ctx.uuid()), ..*market };
    let poor = http.with(&app.disabled_key(&app.user("poor").await, Tier::Free).await);
    let disabled = http.with(&app.disabled_key(ada, Tier::Free).await);
    let first = client.buy(*market, 0, "1").idempotent("k").await.created();
    let second = client.buy(*market, 0, "1").with("clientRequestId", "n").await.created();
    let both = client.buy(*market, 0, "1").idempotent("k").with("clientRequestId", "n");
    let long = "k".repeat(256);
    for (call, code, trade) in [
        (client.buy(*market, 0, "0"), ErrorCode::ValidationFailed, none),
        (client.buy(*market, 0, "10000001"), ErrorCode::AmountTooLarge, none),
        (client.buy(*market, 0, "1").idempotent("a b"), ErrorCode::IdempotencyKeyFormatInvalid, none),
        (client.buy(*market, 0, "1").idempotent(&long), ErrorCode::IdempotencyKeyTooLong, none),
        (client.buy(*market, 0, "2").idempotent("k"), ErrorCode::IdempotencyKeyConflict, Some(&first)),
        (both, ErrorCode::ClientRequestIdConflict, Some(&second)),
        (client.buy(unknown, 0, "1"), ErrorCode::MarketNotFound, none),
        (client.buy(frozen, 0, "1"), ErrorCode::MarketNotTradeable, none),
        (client.buy(*market, 7, "1"), ErrorCode::OutcomeIndexInvalid, none),
        (poor.buy(*market, 0, "1"), ErrorCode::SmartAccountNotProvisioned, none),
        (disabled.buy(*market, 0, "1"), ErrorCode::WalletDelegationNotEnabled, none),
        (client.buy(*market, 0, "25000.1"), ErrorCode::SpendingLimitExceeded, none),
        (client.buy(large, 0, "20000"), ErrorCode::InsufficientBalance, none),
        (
            client.buy(*market, 0, "1").with("minTokensOut", "9000000000000000000"),
            ErrorCode::SlippageExceeded,
            none,
        ),
    ] {
        assert_submission(call, code, "not_submitted", trade).await;
    }
    app.faults.always("eth_call", Fault::LostRequest);
    assert_submission(client.buy(*market, 0, "1"), ErrorCode::DependencyUnavailable, "not_submitted", None)
        .await;
    app.faults.heal();
    scene.key.pause().await;
    assert_submission(client.buy(*market, 0, "1"), ErrorCode::ApiKeyPaused, "not_submitted", None).await;
}

#[tokio::test]
async fn a_rejected_confirm_reports_the_submission_of_its_trade() {
    let scene = Scene::gated().await;
    let Scene { app, client, market, .. } = &scene;
    let with = |trade: &Value, token: &str| confirm(client, text(&trade["id"]), json!({ "token": token }));
    let plain = client.buy(*market, 0, "1").await.created();
    let (held, used, made) = (scene.held().await, scene.held().await, scene.held().await);
    scene.confirm(&made).await.ok();
    app.run_workers().await;
    scene.confirm(&used).await.ok();
    let unknown = confirm(client, "x", json!({ "token": "x" }));
    assert_submission(unknown, ErrorCode::ResourceNotFound, "not_submitted", None).await;
    let no_token = confirm(client, text(&held["id"]), json!({}));
    assert_submission(no_token, ErrorCode::ValidationFailed, "not_submitted", None).await;
    for (call, code, submission, trade) in [
        (with(&plain, "x"), ErrorCode::TradeNotAwaitingConfirmation, "submitted", &plain),
        (with(&held, "x"), ErrorCode::ConfirmationTokenInvalid, "not_submitted", &held),
        (with(&used, "x"), ErrorCode::ConfirmationTokenInvalid, "submitted", &used),
        (scene.confirm(&used), ErrorCode::ConfirmationTokenUsed, "submitted", &used),
        (scene.confirm(&made), ErrorCode::ConfirmationTokenUsed, "submitted", &made),
    ] {
        assert_submission(call, code, submission, Some(trade)).await;
    }
    // Confirmed and then rejected by the risk engine, so nothing reached the chain.
    app.freeze(*market).await;
    app.run_workers().await;
    assert_submission(scene.confirm(&used), ErrorCode::ConfirmationTokenUsed, "not_submitted", Some(&used))
        .await;
    app.advance_ms(app.ctx.config.confirmation_window_ms).await;
    assert_submission(scene.confirm(&held), ErrorCode::ConfirmationExpired, "not_submitted", Some(&held))
        .await;
}

#[tokio::test]
async fn a_lost_database_answer_reports_an_unknown_submission() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    let token = text(&held["confirmation"]["token"]).to_owned();
    let (ctx, caller) = (&scene.app.ctx, &scene.key.caller);
    ctx.store.close().await;
    let refusal = app::trades::confirm(ctx, caller, text(&held["id"]), &token).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::DependencyUnavailable);
    assert_eq!(refusal.extensions["submission"], "unknown");
}
