//! Whether the storage accepts writes: whose fault it is if not, and when it is asked.

use app::health::{Reason, ServingFault, Storage, StorageWatcher, readiness};
use app::worker::Worker;
use store::testing::{ProxyFault, TestFolder, proxied_postgres};
use store::{Store, StoreError};
use testkit::TestApp;

/// Makes the writes that are proved fail, like a full disk, or work again.
async fn set_writable(store: &Store, is_writable: bool) {
    let sql = match is_writable {
        false => "ALTER TABLE write_probes RENAME TO no_write_probes",
        true => "ALTER TABLE no_write_probes RENAME TO write_probes",
    };
    let set: Result<u64, StoreError> = store.write(sql, |tx, sql| Box::pin(tx.exec(sql, &[]))).await;
    set.unwrap();
}

#[tokio::test]
async fn a_process_that_cannot_write_to_its_own_file_is_unready_until_it_can() {
    let app = TestApp::new().await;
    let (ctx, watcher) = (&app.ctx, StorageWatcher::new(&app.ctx));
    let look = || async {
        watcher.tick(ctx).await.unwrap();
        (ctx.process.serving.faults(ctx.now()), readiness(ctx).await.database.ok)
    };
    assert_eq!(look().await, (vec![], true));
    set_writable(&ctx.store, false).await;
    app.clock.advance(4_999);
    assert_eq!(look().await, (vec![], true), "a write is proved only every five seconds");
    app.clock.advance(1);
    let (faults, is_ready) = look().await;
    assert!(matches!(&faults[..], [ServingFault::Storage(Storage::Database, _)]), "{faults:?}");
    assert!(!is_ready);
    set_writable(&ctx.store, true).await;
    assert_eq!(look().await, (vec![], true), "after a failure it is proved at each look");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_rejects_writes_degrades_every_process_and_removes_none() {
    let Some((store, proxy)) = proxied_postgres("").await else { return };
    let app = TestApp::with().on(store).start().await;
    let (ctx, watcher) = (&app.ctx, StorageWatcher::new(&app.ctx));
    proxy.plan("INSERT INTO write_probes", ProxyFault::Misspell, 1);
    watcher.tick(ctx).await.unwrap();
    assert_eq!(ctx.process.serving.faults(ctx.now()), []);
    let found = readiness(ctx).await;
    assert_eq!(
        found.degraded.iter().map(|it| it.reason).collect::<Vec<_>>(),
        [Reason::DatabaseRejectsWrites]
    );
    assert!(!found.database.ok && !found.is_ready());
    watcher.tick(ctx).await.unwrap();
    let found = readiness(ctx).await;
    assert!(found.database.ok && found.degraded.is_empty());
}

#[tokio::test]
async fn a_process_whose_chain_accepts_no_writes_is_unready() {
    let (app, folder) = (TestApp::new().await, TestFolder::create());
    let path = folder.path().join("chain.db");
    let ctx = app.ctx_on_chain_file(&path);
    let watcher = StorageWatcher::new(&ctx);
    watcher.tick(&ctx).await.unwrap();
    assert_eq!(ctx.process.serving.faults(ctx.now()), []);
    let file = Store::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let renamed: Result<u64, StoreError> =
        file.write("ALTER TABLE chain RENAME TO no_chain", |tx, sql| Box::pin(tx.exec(sql, &[]))).await;
    renamed.unwrap();
    app.clock.advance(5_000);
    watcher.tick(&ctx).await.unwrap();
    let faults = ctx.process.serving.faults(ctx.now());
    assert!(matches!(&faults[..], [ServingFault::Storage(Storage::Chain, _)]), "{faults:?}");
}

#[tokio::test]
async fn a_process_whose_write_ahead_log_is_gone_is_unready() {
    let (app, folder) = (TestApp::new().await, TestFolder::create());
    let ctx = app.ctx_on_chain_file(&folder.path().join("chain.db"));
    let watcher = StorageWatcher::new(&ctx);
    watcher.tick(&ctx).await.unwrap();
    assert_eq!(ctx.process.serving.faults(ctx.now()), []);
    std::fs::remove_file(folder.path().join("chain.db-wal")).unwrap();
    watcher.tick(&ctx).await.unwrap();
    let faults = ctx.process.serving.faults(ctx.now());
    assert!(matches!(&faults[..], [ServingFault::Storage(Storage::Chain, _)]), "{faults:?}");
}
