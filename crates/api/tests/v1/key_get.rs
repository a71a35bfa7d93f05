//! `GET /v1/key`.

use app::keys::{IssueKey, revoke};
use domain::key::{LimitOverrides, Scopes, Tier};
use domain::{ErrorCode, Usdc};
use testkit::key_of;

use crate::scene::Scene;

#[tokio::test]
async fn a_key_can_read_its_own_record_without_secrets() {
    let scene = Scene::new().await;
    let overrides = LimitOverrides {
        requests_per_minute: Some(77),
        daily: Some(Usdc::from_whole(40)),
        ..LimitOverrides::default()
    };
    let wanted = IssueKey {
        expires_at: Some(scene.app.ctx.now().plus_ms(60_000)),
        ip_allowlist: "203.0.113.7, 2001:db8::/32".parse().unwrap(),
        webhook_url: Some("https://example.org/hook".to_owned()),
        overrides,
        ..key_of(&scene.ada, Tier::Mm)
    };
    let key = scene.app.issue(wanted).await.unwrap();
    scene.app.enable(&scene.ada, &key).await;
    let client = scene.http.with(&key);
    client.buy(scene.market, 0, "15").await.created();
    let answer = client.get("/v1/key").await;
    let body = answer.ok();
    assert_eq!(body["key"], body["data"]);
    let stored = scene.app.text_of_keys().await;
    let secrets = stored.lines().filter(|line| line.contains("example.org")).collect::<String>();
    let digest = &secrets[36 + key.caller.key.name.len()..][..64];
    assert!(digest.bytes().all(|b| b.is_ascii_hexdigit()) && !answer.text.contains(digest), "{digest}");
    assert!(!answer.text.contains(&key.plaintext) && !answer.text.contains("whsec_"));
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_key_without_scopes_can_only_read_its_own_record() {
    let scene = Scene::new().await;
    let wanted = IssueKey { scopes: Some(Scopes::default()), ..key_of(&scene.ada, Tier::Free) };
    let client = scene.http.with(&scene.app.issue(wanted).await.unwrap());
    assert_eq!(client.get("/v1/key").await.ok()["key"]["scopes"], serde_json::json!([]));
    client.get("/v1/markets").await.refused(ErrorCode::InsufficientScope);
}

#[tokio::test]
async fn a_route_for_any_key_requires_a_key() {
    let scene = Scene::new().await;
    scene.http.anonymous().get("/v1/key").await.refused(ErrorCode::ApiKeyMissing);
    scene.http.with_text("x").get("/v1/key").await.refused(ErrorCode::ApiKeyMalformed);
    revoke(&scene.app.ctx, scene.key.caller.key.id).await.unwrap();
    scene.client.get("/v1/key").await.refused(ErrorCode::ApiKeyRevoked);
}

#[tokio::test]
async fn unknown_parameters_are_rejected() {
    let scene = Scene::new().await;
    for path in ["/v1/key?x=1", "/v1/account/usage?window=24h", "/v1/account/readiness?x"] {
        scene.client.get(path).await.refused(ErrorCode::ValidationFailed);
    }
}
