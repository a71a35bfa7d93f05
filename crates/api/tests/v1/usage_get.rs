//! `GET /v1/account/usage`.

use app::keys::{IssueKey, revoke};
use app::usage;
use domain::ErrorCode;
use domain::key::{Scope, Scopes, Tier};
use http_testkit::{Client, Keyed};
use serde_json::{Value, json};
use testkit::key_of;

use crate::scene::Scene;

const PATH: &str = "/v1/account/usage";

async fn usage_of(client: &Client<Keyed>) -> Value {
    client.get(PATH).await.ok()["usage"].take()
}

/// Returns the number of requests of the last 24 hours with a latency.
async fn requests(client: &Client<Keyed>) -> u64 {
    usage_of(client).await["latency"]["24h"]["count"].as_u64().unwrap()
}

#[tokio::test]
async fn usage_covers_three_windows() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    scene.settled(scene.client.sell(scene.market, 0, "30")).await;
    scene.client.buy(scene.market, 1, "7").await.created();
    scene.client.get("/v1/markets/1").await.refused(ErrorCode::MarketNotFound);
    let answer = scene.client.get(PATH).await;
    let body = answer.ok();
    assert_eq!(body["usage"], body["data"]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn an_unused_key_has_empty_usage() {
    let scene = Scene::new().await;
    let fresh = scene.http.with(&scene.app.disabled_key(&scene.ada, Tier::Free).await);
    let usage = usage_of(&fresh).await;
    assert_eq!(usage["lastUsedAt"], Value::Null);
    assert_eq!(usage["limits"]["highValueThresholdUsdc"], Value::Null);
    let nothing = json!({ "count": 0, "p50Ms": null, "p95Ms": null, "p99Ms": null });
    assert_eq!(usage["latency"]["30d"], nothing);
    assert_eq!(usage["auth"]["30d"], json!({ "rateLimitRejections": 0, "failures": 0, "byCode": {} }));
}

#[tokio::test]
async fn usage_covers_only_the_calling_key() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    let second = scene.http.with(&scene.app.disabled_key(&scene.ada, Tier::Mm).await);
    assert_eq!(requests(&second).await, 0);
    second.get("/v1/markets").await.ok();
    assert_eq!(requests(&second).await, 1);
    let usage = usage_of(&second).await;
    assert_eq!(usage["trades"]["24h"]["created"], 0);
    assert_eq!(usage["spend"]["last24hUsdc"], "0");
    assert_eq!(requests(&scene.client).await, 2);
}

#[tokio::test]
async fn rejected_requests_are_counted_by_code() {
    let scene = Scene::new().await;
    let app = &scene.app;
    let expires_at = Some(app.ctx.now().plus_ms(1));
    let scopes = Some(Scopes::of(&[Scope::AuthManage]));
    let wanted = || IssueKey { scopes, ..key_of(&scene.ada, Tier::Mm) };
    let narrow = app.issue(wanted()).await.unwrap();
    let near =
        app.issue(IssueKey { ip_allowlist: "203.0.113.7".parse().unwrap(), ..wanted() }).await.unwrap();
    let expired = app.issue(IssueKey { expires_at, ..wanted() }).await.unwrap();
    let revoked = app.issue(wanted()).await.unwrap();
    app.clock.advance(1);
    revoke(&app.ctx, revoked.caller.key.id).await.unwrap();

    scene.http.with(&narrow).get("/v1/markets").await.refused(ErrorCode::InsufficientScope);
    let far = || scene.http.with(&near).get(PATH).from_peer("192.0.2.1");
    far().await.refused(ErrorCode::IpNotAllowed);
    far().await.refused(ErrorCode::IpNotAllowed);
    scene.http.with(&expired).get(PATH).await.refused(ErrorCode::ApiKeyExpired);
    scene.http.with(&revoked).trade(json!({})).await.refused(ErrorCode::ApiKeyRevoked);

    for (key, by_code) in
        [(&narrow, json!({ "INSUFFICIENT_SCOPE": 1 })), (&near, json!({ "IP_NOT_ALLOWED": 2 }))]
    {
        let usage = usage_of(&scene.http.with(key)).await;
        let day = &usage["auth"]["24h"];
        assert_eq!(day["byCode"], by_code);
        assert_eq!(day["failures"], by_code.as_object().unwrap().values().next().unwrap().clone());
        assert_eq!(usage["latency"]["24h"]["count"], 0, "a refusal at the door has no latency");
    }
    // These two keys can no longer request their own usage.
    for (key, code) in [(&expired, ErrorCode::ApiKeyExpired), (&revoked, ErrorCode::ApiKeyRevoked)] {
        let seen = usage::of_key(&app.ctx, &key.caller).await.unwrap();
        assert_eq!(seen.requests.day.refusals().collect::<Vec<_>>(), [(code, 1)]);
        assert_eq!(seen.last_used_at, Some(app.ctx.now()));
    }
}

#[tokio::test]
async fn rate_limit_rejections_are_counted_apart_from_failures() {
    let Scene { app, key, client, .. } = Scene::new().await;
    for code in
        [ErrorCode::RateLimitExceeded, ErrorCode::RateLimitExceeded, ErrorCode::RequestSignatureInvalid]
    {
        app.ctx.process.usage.record(key.caller.key.id, Some(code), 0, app.ctx.now());
    }
    let by_code = json!({ "RATE_LIMIT_EXCEEDED": 2, "REQUEST_SIGNATURE_INVALID": 1 });
    let expected = json!({ "rateLimitRejections": 2, "failures": 1, "byCode": by_code });
    assert_eq!(usage_of(&client).await["auth"]["24h"], expected);
}

#[tokio::test]
async fn an_error_does_not_name_the_rejected_key() {
    let scene = Scene::new().await;
    revoke(&scene.app.ctx, scene.key.caller.key.id).await.unwrap();
    let answer = scene.client.get(PATH).await;
    answer.refused(ErrorCode::ApiKeyRevoked);
    assert!(!answer.to_string().contains(&scene.key.caller.key.id.to_string()), "{answer}");
    assert!(!answer.text.contains(&scene.key.caller.key.id.to_string()), "{answer}");
}

#[tokio::test]
async fn requests_with_unknown_keys_are_not_counted() {
    let scene = Scene::new().await;
    let guessed = scene.http.with_text(&format!("service_test_{}", "a".repeat(32)));
    guessed.get(PATH).await.refused(ErrorCode::ApiKeyInvalid);
    scene.http.anonymous().get(PATH).await.refused(ErrorCode::ApiKeyMissing);
    usage::flush(&scene.app.ctx).await.unwrap();
    assert_eq!(scene.app.usage_rows().await, 0);
}

#[tokio::test]
async fn usage_is_written_only_when_it_is_flushed() {
    let scene = Scene::new().await;
    for _ in 0..50 {
        scene.client.get("/v1/markets").await.ok();
    }
    assert_eq!(scene.app.usage_rows().await, 0);
    assert_eq!(requests(&scene.client).await, 50);
    usage::flush(&scene.app.ctx).await.unwrap();
    assert_eq!(requests(&scene.client).await, 50);
}

#[tokio::test]
async fn reading_usage_changes_neither_it_nor_its_etag() {
    let Scene { app, client, .. } = Scene::new().await;
    client.get("/v1/markets").await.ok();
    let first = client.get(PATH).await;
    let tag = first.header("etag").unwrap().to_owned();
    app.clock.advance(1_000);
    let again = client.get(PATH).header("if-none-match", &tag).await;
    assert_eq!(again.status.as_u16(), 304);
    assert_eq!(usage_of(&client).await, first.ok()["usage"]);
    client.get("/v1/markets").await.ok();
    assert_eq!(client.get(PATH).header("if-none-match", &tag).await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_latency_is_the_time_from_the_request_to_its_answer() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let held = app.faults.hold("eth_call");
    let call = tokio::spawn(client.quote(market, 0, "buy", "25000000").send());
    held.reached().await;
    app.clock.advance(300);
    held.release();
    call.await.unwrap().ok();
    let usage = usage_of(&client).await;
    // The middle of the histogram bucket that contains 300.
    let expected = json!({ "count": 1, "p50Ms": 296, "p95Ms": 296, "p99Ms": 296 });
    assert_eq!(usage["latency"]["24h"], expected);
}
