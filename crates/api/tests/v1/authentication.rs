//! Authentication: the key's form, existence, lifetime, allowed addresses and scopes.

use std::sync::Arc;

use app::Config;
use app::keys::{IssueKey, revoke};
use domain::ErrorCode;
use domain::key::{Environment, Scope, Scopes, Tier};
use domain::time::HOUR_MS;
use http_testkit::{Client, Keyed, ServeHttp};
use testkit::{TestApp, TestKey, key_of};

async fn key_with(app: &TestApp, change: impl FnOnce(&mut IssueKey)) -> TestKey {
    let ada = app.user("ada").await;
    let mut wanted = key_of(&ada, Tier::Mm);
    change(&mut wanted);
    app.issue(wanted).await.unwrap()
}

async fn refused(client: &Client<Keyed>, code: ErrorCode) {
    client.get("/v1/markets").await.refused(code);
}

#[tokio::test]
async fn a_request_without_a_key_gets_an_error_that_names_the_header() {
    let answer = TestApp::new().await.http().anonymous().get("/v1/markets").await;
    answer.refused(ErrorCode::ApiKeyMissing);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_value_without_the_form_of_a_key_is_malformed() {
    let app = TestApp::new().await;
    let http = app.http();
    let key = key_with(&app, |_| ()).await.plaintext;
    let (longer, shorter) = (format!("{key}a"), &key[..key.len() - 1]);
    let other = key.replace("service_test_", "service_prod_");
    let dashed = format!("{}-", shorter);
    for text in [
        "",
        "x",
        "service_test_",
        &longer,
        shorter,
        &other,
        &dashed,
        &key.to_uppercase(),
        &format!("Bearer {key}"),
    ] {
        let answer = http.with_text(text).get("/v1/markets").await;
        answer.refused(ErrorCode::ApiKeyMalformed);
        assert!(text.is_empty() || !answer.text.contains(text), "the key is repeated in\n{answer}");
    }
    let bytes = http.anonymous().get("/v1/markets").header("x-api-key", b"\xff");
    bytes.await.refused(ErrorCode::ApiKeyMalformed);
}

#[tokio::test]
async fn a_key_that_is_sent_twice_is_malformed() {
    let app = TestApp::new().await;
    let key = key_with(&app, |_| ()).await;
    let call = app.http().with(&key).get("/v1/markets").header("x-api-key", &key.plaintext);
    call.await.refused(ErrorCode::ApiKeyMalformed);
}

#[tokio::test]
async fn an_unknown_key_is_invalid() {
    let app = TestApp::new().await;
    let key = key_with(&app, |_| ()).await.plaintext;
    let last = if key.ends_with('a') { 'b' } else { 'a' };
    let guessed = format!("{}{last}", &key[..key.len() - 1]);
    refused(&app.http().with_text(&guessed), ErrorCode::ApiKeyInvalid).await;
}

#[tokio::test]
async fn a_key_of_the_other_environment_is_invalid_even_if_stored() {
    let mut app = TestApp::new().await;
    let http = app.http();
    app.ctx.config = Arc::new(Config { environment: Environment::Live, ..app.ctx.config.as_ref().clone() });
    let live = key_with(&app, |_| ()).await;
    assert!(live.plaintext.starts_with("service_live_"));
    refused(&http.with(&live), ErrorCode::ApiKeyInvalid).await;
    app.http().with(&live).get("/v1/markets").await.ok();
}

#[tokio::test]
async fn a_revoked_key_is_reported_as_revoked() {
    let app = TestApp::new().await;
    let key = key_with(&app, |_| ()).await;
    let client = app.http().with(&key);
    client.get("/v1/markets").await.ok();
    revoke(&app.ctx, key.caller.key.id).await.unwrap();
    refused(&client, ErrorCode::ApiKeyRevoked).await;
}

#[tokio::test]
async fn a_key_revoked_by_one_process_is_rejected_by_another_within_a_second() {
    let app = TestApp::new().await;
    let key = key_with(&app, |_| ()).await;
    let other = app.http_with(|state| state.ctx = app.ctx_of_another_process()).with(&key);
    other.get("/v1/markets").await.ok();
    revoke(&app.ctx, key.caller.key.id).await.unwrap();
    other.get("/v1/markets").await.ok();
    app.clock.advance(500);
    refused(&other, ErrorCode::ApiKeyRevoked).await;
}

#[tokio::test]
async fn failures_of_a_known_key_are_in_its_audit_log() {
    let app = TestApp::new().await;
    let (allowed, soon) = ("198.51.100.7".parse().unwrap(), Some(app.ctx.now().plus_ms(1)));
    let far = key_with(&app, |key| key.ip_allowlist = allowed).await;
    let expired = key_with(&app, |key| key.expires_at = soon).await;
    let revoked = key_with(&app, |_| ()).await;
    let reader = key_with(&app, |key| key.scopes = Some(Scopes::of(&[Scope::MarketsRead]))).await;
    app.clock.advance(1);
    revoke(&app.ctx, revoked.caller.key.id).await.unwrap();
    let http = app.http();
    let refused = http.with(&far).get("/v1/markets").await;
    http.with(&far).get("/v1/trades").await.refused(ErrorCode::IpNotAllowed);
    http.with(&expired).get("/v1/trades/7?x=secret").await.refused(ErrorCode::ApiKeyExpired);
    http.with(&revoked).trade(serde_json::json!({})).await.refused(ErrorCode::ApiKeyRevoked);
    http.with(&reader).get("/v1/markets").header("x-service-signature", "x").await;
    http.with(&reader).get("/v1/trades").await.refused(ErrorCode::InsufficientScope);
    // These are not recorded: successful requests, errors unrelated to authentication, and unknown
    // keys.
    http.with(&reader).get("/v1/markets?limit=x").await.refused(ErrorCode::ValidationFailed);
    http.with_text(&format!("service_test_{}", "a".repeat(32))).get("/v1/markets").await;
    app.run_workers().await;
    let log = async |key: &TestKey| {
        let id = key.caller.key.id;
        let listed = app.ctx.store.read(id, |tx, id| Box::pin(store::audit::list(tx, *id, 100))).await;
        listed.unwrap()
    };
    let lines = async |key: &TestKey| {
        let line = |entry: &store::audit::AuditEntry| {
            format!("{} {} {} x{}", entry.code, entry.ip, entry.route, entry.failures)
        };
        log(key).await.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(lines(&far).await, ["IP_NOT_ALLOWED 203.0.113.7 GET /v1/markets x2"]);
    assert_eq!(log(&far).await[0].request_id, refused.header("x-request-id").unwrap());
    assert_eq!(lines(&expired).await, ["API_KEY_EXPIRED 203.0.113.7 GET /v1/trades/{id} x1"]);
    assert_eq!(lines(&revoked).await, ["API_KEY_REVOKED 203.0.113.7 POST /v1/trades x1"]);
    let both = [
        "INSUFFICIENT_SCOPE 203.0.113.7 GET /v1/trades x1",
        "REQUEST_SIGNATURE_INVALID 203.0.113.7 GET /v1/markets x1",
    ];
    assert_eq!(lines(&reader).await, both);
}

#[tokio::test]
async fn a_key_works_until_the_millisecond_of_its_expiry() {
    let app = TestApp::new().await;
    let expires_at = Some(app.ctx.now().plus_ms(HOUR_MS));
    let client = app.http().with(&key_with(&app, |key| key.expires_at = expires_at).await);
    app.clock.advance(HOUR_MS - 1);
    client.get("/v1/markets").await.ok();
    app.clock.advance(1);
    refused(&client, ErrorCode::ApiKeyExpired).await;
}

#[tokio::test]
async fn a_key_without_the_scope_of_a_route_gets_an_error_that_names_it() {
    let app = TestApp::new().await;
    let others = [Scope::MarketsQuote, Scope::TradesWrite];
    let client = app.http().with(&key_with(&app, |key| key.scopes = Some(Scopes::of(&others))).await);
    let answer = client.get("/v1/markets").await;
    answer.refused(ErrorCode::InsufficientScope);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_self_served_key_only_reads() {
    let app = TestApp::new().await;
    let client = app.http().with(&key_with(&app, |key| (key.tier, key.scopes) = (Tier::Free, None)).await);
    client.get("/v1/markets").await.ok();
    client.get("/v1/portfolio").await.ok();
    client.get("/v1/trades").await.refused(ErrorCode::InsufficientScope);
    client.trade(serde_json::json!({})).await.refused(ErrorCode::InsufficientScope);
}

#[tokio::test]
async fn a_key_with_an_allowlist_works_only_from_its_addresses() {
    let app = TestApp::new().await;
    let allowed = "198.51.100.0/30, 2001:db8::1".parse().unwrap();
    let client = app.http().with(&key_with(&app, |key| key.ip_allowlist = allowed).await);
    for peer in ["198.51.100.3", "2001:db8::1", "::ffff:198.51.100.1"] {
        client.get("/v1/markets").from_peer(peer).await.ok();
    }
    for peer in ["198.51.100.4", "2001:db8::2", "::1", "127.0.0.1"] {
        client.get("/v1/markets").from_peer(peer).await.refused(ErrorCode::IpNotAllowed);
    }
}

#[tokio::test]
async fn an_allowlist_uses_forwarded_addresses_only_from_trusted_proxies() {
    let app = TestApp::new().await;
    let allowed = "198.51.100.7".parse().unwrap();
    let key = key_with(&app, |key| key.ip_allowlist = allowed).await;
    let client = app.http_behind(&["10.0.0.0/8"]).with(&key);
    let from =
        |peer: &str, name: &str, hops: &str| client.get("/v1/markets").from_peer(peer).header(name, hops);

    from("10.0.0.1", "x-forwarded-for", "198.51.100.7").await.ok();
    from("10.0.0.1", "x-forwarded-for", "192.0.2.1, 198.51.100.7, 10.0.0.2").await.ok();
    from("10.0.0.1", "forwarded", "for=198.51.100.7;proto=https").await.ok();
    for (peer, name, hops) in [
        ("203.0.113.9", "x-forwarded-for", "198.51.100.7"),
        ("10.0.0.1", "x-forwarded-for", "198.51.100.7, 203.0.113.9"),
        ("10.0.0.1", "forwarded", "for=198.51.100.7, for=203.0.113.9"),
        ("10.0.0.1", "x-real-ip", "198.51.100.7"),
    ] {
        from(peer, name, hops).await.refused(ErrorCode::IpNotAllowed);
    }
    let untrusting = app.http().with(&key).get("/v1/markets").from_peer("10.0.0.1");
    untrusting.header("x-forwarded-for", "198.51.100.7").await.refused(ErrorCode::IpNotAllowed);
}

#[tokio::test]
async fn only_a_known_caller_names_the_trace_of_a_request() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let [stranger, known] = ["4bf92f3577b34da6a3ce929d0e0e4736", "5bf92f3577b34da6a3ce929d0e0e4736"];
    let parent = |trace: &str| format!("00-{trace}-00f067aa0ba902b7-01");
    app.http().anonymous().get("/v1/trades").header("traceparent", parent(stranger)).await;
    let client = app.http().with(&app.key(&ada, Tier::Mm).await);
    client.get("/v1/trades").header("traceparent", parent(known)).await.ok();
    let metrics = app::scrape::metrics_text(&app.ctx);
    assert!(metrics.contains(known) && !metrics.contains(stranger), "{metrics}");
}
