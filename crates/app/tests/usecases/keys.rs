//! API keys: issued, found and rejected.

use std::net::IpAddr;

use app::caller::Caller;
use app::keys::{IssueKey, authenticate, list_own, revoke};
use app::{AppError, people};
use domain::key::{Environment, LimitOverrides, PlaintextKey, Scope, Scopes, Tier};
use domain::time::HOUR_MS;
use domain::{ErrorCode, Usdc};
use futures::future::join_all;
use store::Store;
use testkit::{TestApp, TestKey, key_of};

async fn call(app: &TestApp, key: &str) -> Result<Caller, AppError> {
    call_from(app, key, "203.0.113.7").await
}

async fn call_from(app: &TestApp, key: &str, ip: &str) -> Result<Caller, AppError> {
    let ip: IpAddr = ip.parse().unwrap();
    authenticate(&app.ctx, Some(key), ip).await
}

async fn code(call: impl Future<Output = Result<Caller, AppError>>) -> ErrorCode {
    call.await.unwrap_err().code
}

store::on_each_engine! {
    async fn an_issued_key_is_found_only_by_its_plaintext(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let key: TestKey = app.issue(IssueKey { scopes: None, ..key_of(&ada, Tier::Enterprise) }).await.unwrap();
        assert!(key.plaintext.starts_with("service_test_"));
        let caller = call(&app, &key.plaintext).await.unwrap();
        assert_eq!(caller.key, key.caller.key);
        assert_eq!(caller.key.scopes, Tier::Enterprise.default_scopes());
        caller.require(Scope::TradesWrite).unwrap();
        assert_eq!(caller.require(Scope::AuthManage).unwrap_err().code, ErrorCode::InsufficientScope);
        let mut wrong = key.plaintext.clone();
        let last = if wrong.pop() == Some('A') { 'B' } else { 'A' };
        wrong.push(last);
        assert_eq!(code(call(&app, &wrong)).await, ErrorCode::ApiKeyInvalid);
    }

    async fn a_key_that_works_is_listed_and_paused_however_many_were_revoked(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let revoke_all = "UPDATE keys SET revoked_at_ms = 1 WHERE kind = 'api'";
        for _ in 0..201 {
            for _ in 0..5 {
                app.disabled_key(&ada, Tier::Mm).await;
            }
            app.ctx.store.write(revoke_all, |tx, sql| Box::pin(tx.exec(sql, &[]))).await.unwrap();
        }
        let id = app.disabled_key(&ada, Tier::Mm).await.caller.key.id;
        people::pause_trading(&app.ctx, &app.person_of(&ada).await).await.unwrap();
        let listed = list_own(&app.ctx, ada.id).await.unwrap();
        let listed: Vec<_> = listed.iter().map(|key| (key.id, key.paused_at.is_some())).collect();
        assert_eq!(listed, [(id, true)]);
    }

    async fn a_revocation_takes_effect_at_once_and_is_idempotent(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let key = app.disabled_key(&ada, Tier::Mm).await;
        let revoked = revoke(&app.ctx, key.caller.key.id).await.unwrap().key;
        assert_eq!(code(call(&app, &key.plaintext)).await, ErrorCode::ApiKeyRevoked);
        app.clock.advance(HOUR_MS);
        assert_eq!(revoke(&app.ctx, key.caller.key.id).await.unwrap().key.revoked_at, revoked.revoked_at);
        let unknown = domain::ids::KeyId(app.ctx.uuid());
        assert_eq!(revoke(&app.ctx, unknown).await.unwrap_err().code, ErrorCode::ResourceNotFound);
    }

    async fn a_user_has_at_most_five_active_keys(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let soon = Some(app.ctx.now().plus_ms(HOUR_MS));
        app.issue(IssueKey { expires_at: soon, ..key_of(&ada, Tier::Mm) }).await.unwrap();
        let mut keys = Vec::new();
        for _ in 0..4 {
            keys.push(app.disabled_key(&ada, Tier::Mm).await);
        }
        let refused = async || app.issue(key_of(&ada, Tier::Mm)).await.err().map(|refusal| refusal.code);
        assert_eq!(refused().await, Some(ErrorCode::ActiveKeyLimitReached));
        revoke(&app.ctx, keys[0].caller.key.id).await.unwrap();
        assert_eq!(refused().await, None);
        assert_eq!(refused().await, Some(ErrorCode::ActiveKeyLimitReached));
        // An expired key does not count as active.
        app.clock.advance(HOUR_MS);
        assert_eq!(refused().await, None);
        assert_eq!(refused().await, Some(ErrorCode::ActiveKeyLimitReached));
        // Another user has a separate limit of five keys.
        let bob = app.user("bob").await;
        app.disabled_key(&bob, Tier::Mm).await;
    }

    async fn twenty_concurrent_requests_issue_five_keys(store: Store) {
        let app = std::sync::Arc::new(TestApp::with().on(store).start().await);
        let ada = app.user("ada").await;
        let issued = (0..20).map(|_| {
            let (app, ada) = (app.clone(), ada.clone());
            tokio::spawn(async move { app.issue(key_of(&ada, Tier::Mm)).await })
        });
        let outcomes: Vec<_> = join_all(issued).await.into_iter().map(Result::unwrap).collect();
        let mut indexes = Vec::new();
        for outcome in outcomes {
            match outcome {
                Ok(key) => indexes.push(key.caller.key.key_index),
                Err(refusal) => assert_eq!(refusal.code, ErrorCode::ActiveKeyLimitReached, "{:?}", refusal.source),
            }
        }
        indexes.sort_unstable();
        assert_eq!(indexes, [0, 1, 2, 3, 4]);
    }
}

#[tokio::test]
async fn a_key_expires_exactly_at_its_expiry() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let expires_at = Some(app.ctx.now().plus_ms(HOUR_MS));
    let key = app.issue(IssueKey { expires_at, ..key_of(&ada, Tier::Mm) }).await.unwrap();
    app.clock.advance(HOUR_MS - 1);
    call(&app, &key.plaintext).await.unwrap();
    app.clock.advance(1);
    assert_eq!(code(call(&app, &key.plaintext)).await, ErrorCode::ApiKeyExpired);
    revoke(&app.ctx, key.caller.key.id).await.unwrap();
    assert_eq!(code(call(&app, &key.plaintext)).await, ErrorCode::ApiKeyRevoked);
}

#[tokio::test]
async fn each_invalid_header_has_its_own_error() {
    let app = TestApp::new().await;
    let ip = "203.0.113.7".parse().unwrap();
    assert_eq!(authenticate(&app.ctx, None, ip).await.unwrap_err().code, ErrorCode::ApiKeyMissing);
    for text in ["", "service_test_", "Bearer x", "service_test_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"] {
        assert_eq!(code(call(&app, text)).await, ErrorCode::ApiKeyMalformed, "{text:?}");
    }
    let live = PlaintextKey::from_random(Environment::Live, &[61; 48]).unwrap();
    assert_eq!(code(call(&app, live.expose())).await, ErrorCode::ApiKeyInvalid);
    let unknown = PlaintextKey::from_random(Environment::Test, &[61; 48]).unwrap();
    assert_eq!(code(call(&app, unknown.expose())).await, ErrorCode::ApiKeyInvalid);
}

#[tokio::test]
async fn a_stored_key_of_the_other_environment_is_invalid() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let mut live = app.ctx.clone();
    let mut config = app.ctx.config.as_ref().clone();
    config.environment = Environment::Live;
    live.config = std::sync::Arc::new(config);
    let key = app::keys::issue(&live, key_of(&ada, Tier::Mm)).await.unwrap();
    assert_eq!(code(call(&app, key.plaintext.expose())).await, ErrorCode::ApiKeyInvalid);
    authenticate(&live, Some(key.plaintext.expose()), "203.0.113.7".parse().unwrap()).await.unwrap();
}

#[tokio::test]
async fn an_allowlist_admits_only_its_addresses() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let ip_allowlist = "203.0.113.0/24, 2001:db8::1".parse().unwrap();
    let key = app.issue(IssueKey { ip_allowlist, ..key_of(&ada, Tier::Mm) }).await.unwrap();
    for ip in ["203.0.113.255", "::ffff:203.0.113.1", "2001:db8::1"] {
        call_from(&app, &key.plaintext, ip).await.unwrap();
    }
    for ip in ["203.0.114.0", "2001:db8::2", "127.0.0.1"] {
        assert_eq!(code(call_from(&app, &key.plaintext, ip)).await, ErrorCode::IpNotAllowed, "{ip}");
    }
}

#[tokio::test]
async fn self_serve_tiers_cannot_have_individual_limits() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let overrides = LimitOverrides { daily: Some(Usdc::from_whole(5)), ..LimitOverrides::default() };
    for tier in [Tier::Free, Tier::Developer] {
        let refused = app.issue(IssueKey { overrides, ..key_of(&ada, tier) }).await.err().unwrap();
        assert_eq!(refused.code, ErrorCode::ValidationFailed);
    }
    let key = app.issue(IssueKey { overrides, ..key_of(&ada, Tier::Enterprise) }).await.unwrap();
    assert_eq!(call(&app, &key.plaintext).await.unwrap().limits().daily, Usdc::from_whole(5));
}

#[tokio::test]
async fn key_settings_round_trip_and_secrets_are_never_stored_in_plain() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let scopes = Scopes::of(&[Scope::TradesRead]);
    let wanted = IssueKey {
        scopes: Some(scopes),
        webhook_url: Some("https://example.org/hook".to_owned()),
        ..key_of(&ada, Tier::Mm)
    };
    let issued = app::keys::issue(&app.ctx, wanted).await.unwrap();
    let caller = call(&app, issued.plaintext.expose()).await.unwrap();
    assert_eq!(caller.key.as_ref(), &issued.key);
    assert!(issued.webhook_secret.expose().starts_with("whsec_"));
    let stored = app.text_of_keys().await;
    let secret = issued.plaintext.expose().trim_start_matches("service_test_");
    let webhook = issued.webhook_secret.expose().trim_start_matches("whsec_");
    assert!(!stored.contains(secret) && !stored.contains(webhook), "{stored}");
}

#[tokio::test]
async fn a_key_without_a_user_or_valid_name_is_not_issued() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let wanted = IssueKey { user_id: domain::ids::UserId(app.ctx.uuid()), ..key_of(&ada, Tier::Mm) };
    assert_eq!(app.issue(wanted).await.err().unwrap().code, ErrorCode::ResourceNotFound);
    for name in ["", "a\0b", &"x".repeat(101)] {
        let wanted = IssueKey { name: name.to_owned(), ..key_of(&ada, Tier::Mm) };
        assert_eq!(app.issue(wanted).await.err().unwrap().code, ErrorCode::ValidationFailed);
    }
}
