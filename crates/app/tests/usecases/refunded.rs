//! When a market that was called off counts as refunded.

use domain::ids::MarketId;
use store::{Store, StoreError};
use testkit::TestApp;

use crate::scene::Scene;

async fn is_refunded(app: &TestApp, id: MarketId) -> bool {
    let read: Result<_, StoreError> =
        app.ctx.store.read(id, |tx, id| Box::pin(store::markets::is_refunded(tx, *id))).await;
    read.unwrap()
}

store::on_each_engine! {
    async fn a_market_is_refunded_once_nobody_is_owed_anything(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, key, market, .. } = &scene;
        for outcome in [0, 1] {
            key.buy(market, outcome, "40").await;
        }
        app.run_workers().await;
        assert!(!is_refunded(app, market.id).await, "it is open");
        app.cancel(*market).await;
        app.run_workers().await;
        assert!(!is_refunded(app, market.id).await, "two positions are unpaid");
        key.redeemed(market, 0).await;
        app.run_workers().await;
        assert!(!is_refunded(app, market.id).await, "one position is unpaid");
        key.redeemed(market, 1).await;
        app.run_workers().await;
        assert!(is_refunded(app, market.id).await);
    }

    async fn a_cancelled_market_that_nobody_traded_is_refunded_at_once(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let market = app.market(&["Yes", "No"]).await;
        assert!(!is_refunded(&app, market.id).await);
        app.cancel(market).await;
        app.run_workers().await;
        assert!(is_refunded(&app, market.id).await);
    }

    async fn a_market_with_a_result_is_not_refunded(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let market = app.market(&["Yes", "No"]).await;
        app.resolve(market, 0).await;
        app.run_workers().await;
        assert!(!is_refunded(&app, market.id).await);
    }
}
