//! The cleaner deletes rows that are no longer needed, and nothing else.

use app::cleanup::Cleaner;
use app::worker::Worker;
use domain::time::DAY_MS;
use store::Store;

use crate::scene::Scene;

store::on_each_engine! {
    async fn cleanup_removes_expired_idempotency_keys_and_old_batches(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "1").idempotent("old").await;
        app.run_workers().await;
        app.advance_ms(DAY_MS - 1).await;
        key.buy(&market, 0, "1").idempotent("new").await;
        app.run_workers().await;
        let cleaner = Cleaner;
        cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!((app.rows().await.idempotency, app.rows().await.batches), (2, 2));
        app.advance_ms(1).await;
        cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!((app.rows().await.idempotency, app.rows().await.batches), (1, 2));
        key.buy(&market, 0, "1").idempotent("new").replayed().await;
        app.advance_ms(6 * DAY_MS + 1).await;
        cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!((app.rows().await.idempotency, app.rows().await.batches, app.rows().await.trades), (0, 1, 2));
        app.assert_ledger_equals_chain().await;
    }
}
