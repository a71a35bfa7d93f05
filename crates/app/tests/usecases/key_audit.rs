//! The audit log of failed authentications, and the cached state of keys between requests.

use app::cleanup::Cleaner;
use app::keys::audit::flush;
use app::keys::{authenticate, revoke};
use app::process::audit_buffer::FailedAuthentication;
use app::worker::Worker;
use domain::ErrorCode;
use domain::ids::KeyId;
use domain::time::{DAY_MS, MINUTE_MS};
use store::Store;
use store::audit::AuditEntry;
use testkit::TestApp;

use crate::scene::Scene;

fn fail(ctx: &app::Ctx, key_id: KeyId, code: ErrorCode, ip: &str) {
    let (route, request_id) = ("GET /v1/markets".to_owned(), format!("req at {}", ctx.now().ms()));
    ctx.process
        .key_audit
        .note(FailedAuthentication { key_id, code, ip: ip.parse().unwrap(), route, request_id }, ctx.now());
}

async fn entries(app: &TestApp, key_id: KeyId) -> Vec<AuditEntry> {
    let listed = app.ctx.store.read(key_id, |tx, id| Box::pin(store::audit::list(tx, *id, 100))).await;
    listed.unwrap()
}

store::on_each_engine! {
    async fn equal_failures_of_a_minute_are_one_row_over_all_processes(store: Store) {
        let Scene { app, key, .. } = Scene::on(store).await;
        let (other, id) = (app.ctx_of_another_process(), key.caller.key.id);
        let minute_begins_in = MINUTE_MS - app.ctx.now().ms() % MINUTE_MS;
        app.clock.advance(minute_begins_in);
        let began = app.ctx.now();
        for _ in 0..500 {
            fail(&app.ctx, id, ErrorCode::IpNotAllowed, "192.0.2.1");
        }
        fail(&app.ctx, id, ErrorCode::IpNotAllowed, "2001:db8::1");
        fail(&app.ctx, id, ErrorCode::InsufficientScope, "192.0.2.1");
        flush(&app.ctx).await.unwrap();
        app.clock.advance(MINUTE_MS - 1);
        fail(&other, id, ErrorCode::IpNotAllowed, "192.0.2.1");
        flush(&other).await.unwrap();
        app.clock.advance(1);
        fail(&other, id, ErrorCode::IpNotAllowed, "192.0.2.1");
        flush(&other).await.unwrap();
        flush(&other).await.unwrap();
        let seen: Vec<_> = entries(&app, id).await.into_iter().map(|e| (e.minute.since_ms(began), e.code, e.ip.to_string(), e.failures)).collect();
        let ip = |text: &str| text.to_owned();
        assert_eq!(seen, [
            (MINUTE_MS, ErrorCode::IpNotAllowed, ip("192.0.2.1"), 1),
            (0, ErrorCode::InsufficientScope, ip("192.0.2.1"), 1),
            (0, ErrorCode::IpNotAllowed, ip("192.0.2.1"), 501),
            (0, ErrorCode::IpNotAllowed, ip("2001:db8::1"), 1),
        ]);
        let many = &entries(&app, id).await[2];
        assert_eq!((many.first_at, many.last_at), (began, began.plus_ms(MINUTE_MS - 1)));
        assert_eq!(many.request_id, format!("req at {}", began.ms()));
    }

    async fn failures_are_deleted_after_90_days(store: Store) {
        let Scene { app, key, .. } = Scene::on(store).await;
        let id = key.caller.key.id;
        app.clock.advance(MINUTE_MS - app.ctx.now().ms() % MINUTE_MS);
        fail(&app.ctx, id, ErrorCode::ApiKeyRevoked, "192.0.2.1");
        flush(&app.ctx).await.unwrap();
        app.clock.advance(90 * DAY_MS);
        Cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!(entries(&app, id).await.len(), 1);
        app.clock.advance(1);
        Cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!(entries(&app, id).await, []);
    }

    async fn a_revocation_is_known_to_every_process_within_half_a_second(store: Store) {
        let Scene { app, key, .. } = Scene::on(store).await;
        let other = app.ctx_of_another_process();
        let ip = "203.0.113.7".parse().unwrap();
        authenticate(&other, Some(&key.plaintext), ip).await.unwrap();
        revoke(&app.ctx, key.caller.key.id).await.unwrap();
        let refused = async |ctx| authenticate(ctx, Some(&key.plaintext), ip).await.err().map(|e| e.code);
        assert_eq!(refused(&app.ctx).await, Some(ErrorCode::ApiKeyRevoked));
        app.clock.advance(499);
        assert_eq!(refused(&other).await, None);
        app.clock.advance(1);
        assert_eq!(refused(&other).await, Some(ErrorCode::ApiKeyRevoked));
    }
}

#[tokio::test]
async fn failures_stay_in_memory_until_they_can_be_stored() {
    let Scene { app, key, .. } = Scene::new().await;
    let mut broken = app.ctx_of_another_process();
    broken.process = std::sync::Arc::clone(&app.ctx.process);
    broken.store = store::testing::sqlite().await;
    broken.store.close().await;
    fail(&broken, key.caller.key.id, ErrorCode::ApiKeyRevoked, "192.0.2.1");
    assert!(flush(&broken).await.is_err());
    fail(&broken, key.caller.key.id, ErrorCode::ApiKeyRevoked, "192.0.2.1");
    flush(&app.ctx).await.unwrap();
    assert_eq!(entries(&app, key.caller.key.id).await[0].failures, 2);
}

#[tokio::test]
async fn failures_from_many_addresses_use_bounded_memory() {
    let Scene { app, key, .. } = Scene::new().await;
    for n in 0..3_000u32 {
        fail(&app.ctx, key.caller.key.id, ErrorCode::ApiKeyRevoked, &std::net::Ipv4Addr::from(n).to_string());
    }
    flush(&app.ctx).await.unwrap();
    let listed =
        app.ctx.store.read(key.caller.key.id, |tx, id| Box::pin(store::audit::list(tx, *id, 5_000))).await;
    assert_eq!(listed.unwrap().len(), 1_000);
}

#[tokio::test]
async fn a_cached_key_is_authenticated_without_the_database() {
    let Scene { app, key, .. } = Scene::new().await;
    let ip = "203.0.113.7".parse().unwrap();
    let guess = format!("service_test_{}", "a".repeat(32));
    authenticate(&app.ctx, Some(&key.plaintext), ip).await.unwrap();
    let code = async |key: &str| authenticate(&app.ctx, Some(key), ip).await.err().map(|e| e.code);
    assert_eq!(code(&guess).await, Some(ErrorCode::ApiKeyInvalid));
    app.ctx.store.close().await;
    assert_eq!(code(&key.plaintext).await, None);
    assert_eq!(code(&guess).await, Some(ErrorCode::ApiKeyInvalid));
    app.clock.advance(500);
    assert_eq!(code(&key.plaintext).await, Some(ErrorCode::DependencyUnavailable));
    assert_eq!(code(&guess).await, Some(ErrorCode::DependencyUnavailable));
}
