//! The time at which a cancelled market counts as refunded.

use domain::ids::MarketId;
use store::Store;
use store::redemptions::{SettledMarket, list_unscanned, put_scan};
use testkit::TestApp;

use crate::scene::Scene;

async fn is_refunded(app: &TestApp, id: MarketId) -> bool {
    let read = app.ctx.store.read(id, |tx, id| Box::pin(store::markets::is_refunded(tx, *id))).await;
    read.unwrap()
}

async fn unscanned(app: &TestApp) -> Vec<SettledMarket> {
    let chain = app.ctx.chain.chain_id();
    let read = app.ctx.store.read(chain, |tx, chain| Box::pin(list_unscanned(tx, *chain, 10))).await;
    read.unwrap()
}

/// Marks a market as scanned to the end.
async fn end(app: &TestApp, market: SettledMarket) {
    let put = app
        .ctx
        .store
        .write((market, app.ctx.now()), |tx, (market, now)| Box::pin(put_scan(tx, market, Some(*now))))
        .await;
    put.unwrap();
}

store::on_each_engine! {
    async fn a_market_is_refunded_once_every_position_is_paid(store: Store) {
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

    async fn a_position_without_a_cost_gets_its_refund(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "40").await;
        app.run_workers().await;
        app.cancel(market).await;
        app.run_workers().await;
        const FREE: &str = "UPDATE positions SET cost_basis_usdc_atomic = 0";
        let changed =
            app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(FREE, &[]))).await;
        assert_eq!(changed, Ok(1));
        assert!(!is_refunded(&app, market.id).await);
    }

    async fn a_cancelled_market_without_trades_is_refunded_at_once(store: Store) {
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

    async fn a_changed_result_restarts_the_scan_of_a_market(store: Store) {
        const CHANGED: &str = "UPDATE payout_scans SET payouts = '[]', after_account = '', ended_at_ms = NULL";
        let app = TestApp::with().on(store).start().await;
        let market = app.market(&["Yes", "No"]).await;
        app.cancel(market).await;
        app.workers.synchronise(&app.ctx).await;
        let found = unscanned(&app).await.remove(0);
        assert_eq!(found.id, market.id);
        let changed =
            app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(CHANGED, &[]))).await;
        assert_eq!(changed, Ok(1));
        // A scan that started before does not cover the present state.
        end(&app, found).await;
        let again = unscanned(&app).await.remove(0);
        assert_eq!((again.id, again.payouts.as_str()), (market.id, "[]"));
        end(&app, again).await;
        assert_eq!(unscanned(&app).await, []);
    }
}
