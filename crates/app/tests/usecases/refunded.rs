//! When a market that was called off counts as refunded.

use domain::ids::MarketId;
use store::redemptions::{SettledMarket, list_unscanned, put_scan};
use store::{Store, StoreError};
use testkit::TestApp;

use crate::scene::Scene;

async fn is_refunded(app: &TestApp, id: MarketId) -> bool {
    let read: Result<_, StoreError> =
        app.ctx.store.read(id, |tx, id| Box::pin(store::markets::is_refunded(tx, *id))).await;
    read.unwrap()
}

async fn unscanned(app: &TestApp) -> Vec<SettledMarket> {
    let chain = app.ctx.chain.chain_id();
    let read: Result<_, StoreError> =
        app.ctx.store.read(chain, |tx, chain| Box::pin(list_unscanned(tx, *chain, 10))).await;
    read.unwrap()
}

/// Notes that all of a market was gone through.
async fn end(app: &TestApp, market: SettledMarket) {
    let put: Result<(), StoreError> = app
        .ctx
        .store
        .write((market, app.ctx.now()), |tx, (market, now)| Box::pin(put_scan(tx, market, Some(*now))))
        .await;
    put.unwrap();
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

    async fn a_refund_that_was_topped_up_while_it_was_gone_through_is_gone_through_again(store: Store) {
        const TOPPED_UP: &str = "UPDATE payout_scans SET refund_scale_wad = '1', after_account = '', ended_at_ms = NULL";
        let app = TestApp::with().on(store).start().await;
        let market = app.market(&["Yes", "No"]).await;
        app.cancel(market).await;
        app.workers.synchronise(&app.ctx).await;
        let found = unscanned(&app).await.remove(0);
        assert_eq!(found.id, market.id);
        let topped_up: Result<u64, StoreError> =
            app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(TOPPED_UP, &[]))).await;
        assert_eq!(topped_up, Ok(1));
        // Whoever went through it before has not gone through what there is now.
        end(&app, found).await;
        let again = unscanned(&app).await.remove(0);
        assert_eq!((again.id, again.refund_scale.as_str()), (market.id, "1"));
        end(&app, again).await;
        assert_eq!(unscanned(&app).await, []);
    }
}
