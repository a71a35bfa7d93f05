//! Requests while PostgreSQL fails or a row is locked: responses state the trade's submission
//! status, and other users are served.

use std::sync::Arc;

use app::health::{HealthMonitor, PoolWatcher, Reason};
use app::webhooks::dispatch_due;
use app::worker::Worker;
use domain::ErrorCode;
use domain::key::Tier;
use domain::webhook::DeliveryStatus;
use futures::future::select_all;
use store::testing::{Link, PostgresProxy, ProxyFault, proxied_postgres};
use store::{Store, StoreError, params};
use testkit::{RpcFault, TestApp};
use tokio::sync::Notify;

use crate::scene::Scene;
use crate::webhooks::WebhookScene;

/// Creates the scene behind a proxy, if a test cluster is configured.
async fn scene(options: &str) -> Option<(Scene, PostgresProxy)> {
    let (store, proxy) = proxied_postgres(options).await?;
    Some((Scene::on(store).await, proxy))
}

const COMMIT: &str = "COMMIT\0";

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_finds_a_trade_after_an_unanswered_commit() {
    let Some((Scene { app, key, market, .. }, proxy)) = scene("").await else { return };
    for (fault, name) in [(ProxyFault::CutAfter, "kept"), (ProxyFault::CutBefore, "lost")] {
        proxy.plan(COMMIT, fault, 1);
        let refusal = key.buy(&market, 0, "5").idempotent(name).refused().await;
        assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{refusal}");
        assert_eq!(refusal.extensions["submission"], "unknown");
        assert_eq!(refusal.retry_after_s, Some(1));
    }
    key.buy(&market, 0, "5").idempotent("kept").replayed().await;
    key.buy(&market, 0, "5").idempotent("lost").await;
    assert_eq!(app.rows().await.trades, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trade_rejected_by_a_panicking_database_is_not_submitted() {
    let Some((Scene { app, key, market, .. }, proxy)) = scene("").await else { return };
    let before = app.rows().await;
    // More often than a transaction is retried.
    proxy.plan("INSERT INTO trades", ProxyFault::Panic, 10);
    let refusal = key.buy(&market, 0, "5").idempotent("k").refused().await;
    assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{refusal}");
    assert_eq!(refusal.extensions["submission"], "not_submitted");
    assert_eq!(app.rows().await, before);
    key.buy(&market, 0, "5").idempotent("k").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_attempt_whose_commits_are_not_answered_is_written_once() {
    let Some((store, proxy)) = proxied_postgres("").await else { return };
    let scene = WebhookScene::on(store).await;
    scene.traded().await;
    for (status, expected) in [(503, DeliveryStatus::Retrying), (200, DeliveryStatus::Delivered)] {
        let held = scene.receiver.hold(status);
        scene.later(scene.due_at().await.unwrap().since_ms(scene.now()).max(0));
        let (ctx, sender) = (scene.app.ctx.clone(), Arc::clone(&scene.app.workers.sender));
        let dispatched = tokio::spawn(async move { dispatch_due(&ctx, &sender).await.unwrap() });
        held.reached().await;
        proxy.plan(COMMIT, ProxyFault::CutBefore, 2);
        proxy.plan(COMMIT, ProxyFault::CutAfter, 1);
        held.release();
        assert_eq!(dispatched.await.unwrap(), 1);
        assert_eq!(scene.delivery().await.status, expected);
    }
    let delivery = scene.delivery().await;
    assert_eq!((delivery.attempts, scene.attempts(&delivery).await.len()), (2, 2));
    assert_eq!(scene.receiver.take().len(), 2);
    assert_eq!(scene.due_at().await, None);
}

/// Runs a statement with an id in another program's transaction, which stays open until it is
/// released.
async fn lock(url: &str, sql: &'static str, id: String) -> impl FnOnce() {
    let (locked, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let input = (id, Arc::clone(&locked), Arc::clone(&release));
    let url = format!("{url}?idle_in_transaction_timeout_ms=0");
    tokio::spawn(async move {
        let outside = Store::open(&url).await.unwrap();
        let unit: Result<(), StoreError> = outside
            .write(input, move |tx, (id, locked, release)| {
                Box::pin(async move {
                    tx.exec(sql, &params![&*id]).await?;
                    locked.notify_one();
                    release.notified().await;
                    Ok(())
                })
            })
            .await;
        unit.unwrap();
    });
    locked.notified().await;
    move || release.notify_one()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_of_one_user_delays_no_other_user() {
    // Four connections for writes, of which one user may take one.
    let options = "max_connections=6&lock_timeout_ms=60000";
    let Some((Scene { app, ada, key, market }, proxy)) = scene(options).await else { return };
    let bob = app.user("bob").funded("1000").await;
    let bobs = app.key(&bob, Tier::Mm).await;
    let account = "UPDATE accounts SET reserved_usdc_atomic = reserved_usdc_atomic WHERE user_id = $1";
    let release = lock(&proxy.url, account, ada.id.to_string()).await;
    let stuck = (0..20).map(|_| {
        let key = key.clone();
        tokio::spawn(async move { key.buy(&market, 0, "5").send().await })
    });
    let mut stuck: Vec<_> = stuck.collect();
    for _ in 0..10 {
        bobs.buy(&market, 0, "5").await;
    }
    app.run_workers().await;
    // All but the one that waits for the row are rejected in the meantime.
    for _ in 1..stuck.len() {
        let (refused, _, others) = select_all(stuck).await;
        let refusal = refused.unwrap().unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{refusal}");
        assert_eq!(refusal.extensions["submission"], "not_submitted");
        assert_eq!(refusal.retry_after_s, Some(1));
        stuck = others;
    }
    release();
    assert!(stuck.remove(0).await.unwrap().is_ok());
    app.run_workers().await;
    assert_eq!(app.rows().await.trades, 11);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_in_use_elsewhere_is_in_progress() {
    let Some((Scene { key, market, .. }, proxy)) = scene("lock_timeout_ms=200").await else { return };
    let elsewhere =
        "INSERT INTO idempotency (user_id, route, idempotency_key, request_hash, trade_id, expires_at_ms)
        VALUES ($1, 'POST /v1/trades', 'k', '', '', 0)";
    let release = lock(&proxy.url, elsewhere, key.caller.user_id().to_string()).await;
    let refusal = key.buy(&market, 0, "5").idempotent("k").refused().await;
    assert_eq!(refusal.code, ErrorCode::IdempotencyKeyConflict, "{refusal}");
    assert_eq!(
        (&refusal.extensions["reason"], &refusal.extensions["submission"]),
        (&"in_progress".into(), &"unknown".into())
    );
    release();
}

/// Takes a connection of the store's reads and keeps it until it is released.
async fn hold_a_read(store: &Store) -> (Arc<Notify>, tokio::task::JoinHandle<Result<(), StoreError>>) {
    let (held, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (store, input) = (store.clone(), (Arc::clone(&held), Arc::clone(&release)));
    let task = tokio::spawn(async move {
        store
            .read(input, |tx, (held, release)| {
                Box::pin(async move {
                    tx.exists("SELECT 1", &[]).await?;
                    held.notify_one();
                    release.notified().await;
                    Ok(())
                })
            })
            .await
    });
    held.notified().await;
    (release, task)
}

#[tokio::test]
async fn an_outage_of_the_database_leaves_every_process_ready_and_its_pools_recover_without_a_request() {
    // One connection for reads.
    let Some((scene, proxy)) = scene("max_connections=4").await else { return };
    let (ctx, serving) = (&scene.app.ctx, &scene.app.ctx.process.serving);
    let look = || async { PoolWatcher.tick(ctx).await.unwrap() };
    look().await;
    let (release, held) = hold_a_read(&ctx.store).await;
    let store = ctx.store.clone();
    let waiting = tokio::spawn(async move { store.ping().await });
    while ctx.store.pools().iter().all(|pool| pool.waiting == 0) {
        tokio::task::yield_now().await;
    }
    look().await;
    proxy.set_link(Link::Cut);
    // Timeouts end at once instead of after their seconds.
    tokio::time::pause();
    look().await;
    scene.app.clock.advance(60_000);
    look().await;
    assert_eq!(serving.stalled_pools(), ["reads"]);
    assert_eq!(serving.faults(ctx.now()), [], "every process has this fault");
    waiting.await.unwrap().unwrap_err();
    release.notify_one();
    drop(held.await.unwrap());
    tokio::time::resume();
    proxy.set_link(Link::Up);
    look().await;
    assert_eq!(serving.stalled_pools(), Vec::<&str>::new(), "no request was sent");
}

#[tokio::test]
async fn an_outage_of_the_chain_degrades_a_process_and_does_not_make_it_unready() {
    let app = TestApp::with().nodes(1).start().await;
    let process = &app.ctx.process;
    app.proxies[0].set(RpcFault::Refused).await;
    // What it looks at after the shared parts needs the chain.
    drop(HealthMonitor::default().tick(&app.ctx).await);
    assert!(process.degradations.has(Reason::ChainUnavailable));
    assert!(!process.degradations.has(Reason::DatabaseUnavailable));
    assert_eq!(process.serving.faults(app.ctx.now()), []);
}
