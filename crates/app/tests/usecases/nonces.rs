//! Nonces of intents: each is used once, and a trade whose nonce another trade has used gets a new
//! one.

use domain::ErrorCode;
use domain::ids::TradeId;
use domain::trade::{State, Status};
use store::{Store, StoreError, params};
use testkit::{Fault, TestApp};

use crate::scene::Scene;

/// Resets the keys' next nonces.
async fn forget_nonces(app: &TestApp) {
    const SQL: &str = "UPDATE key_spend SET next_nonce = 1";
    let done = app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(SQL, &[]))).await;
    done.unwrap();
}

/// Brings two trades of one key on their way to the chain with the same nonce.
async fn two_trades_with_one_nonce(scene: &Scene) -> [TradeId; 2] {
    let Scene { app, key, market, .. } = scene;
    let first = key.buy(market, 0, "10").await.id;
    app.faults.next_send(Fault::NeverMined);
    app.workers.execute(&app.ctx).await;
    forget_nonces(app).await;
    let second = key.buy(market, 1, "10").await.id;
    app.workers.execute(&app.ctx).await;
    assert_eq!(app.trade(first).await.nonce, app.trade(second).await.nonce);
    app.advance_ms(app.ctx.config.resend_after_ms).await;
    [first, second]
}

store::on_each_engine! {
    async fn a_trade_with_a_used_nonce_gets_another_and_executes_once(store: Store) {
        let scene = Scene::on(store).await;
        let [first, second] = two_trades_with_one_nonce(&scene).await;
        let app = &scene.app;
        app.run_workers().await;
        app.run_workers().await;
        for id in [first, second] {
            assert_eq!(app.status(id).await, Status::Completed);
        }
        assert_ne!(app.trade(first).await.nonce, app.trade(second).await.nonce);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_gets_another_nonce_only_once(store: Store) {
        let scene = Scene::on(store).await;
        let [first, second] = two_trades_with_one_nonce(&scene).await;
        let app = &scene.app;
        const SQL: &str = "UPDATE trades SET replaced_nonce = 7 WHERE id = $1";
        let done: Result<u64, StoreError> =
            app.ctx.store.write(second, |tx, id| Box::pin(async move { tx.exec(SQL, &params![*id]).await })).await;
        done.unwrap();
        app.run_workers().await;
        app.run_workers().await;
        assert_eq!(app.status(first).await, Status::Completed);
        let State::Failed(failure) = app.trade(second).await.state else { panic!("not failed") };
        assert_eq!(failure.code, ErrorCode::RequestTimeout);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_with_a_missed_event_is_not_signed_again(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let trade = key.buy(&market, 0, "10").await.id;
        app.workers.execute(&app.ctx).await;
        // As if its event had been missed, and its nonce mistaken for another trade's.
        const SQL: &str = "UPDATE trades SET replaced_nonce = nonce, nonce = NULL, batch_id = NULL";
        let done = app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(SQL, &[]))).await;
        done.unwrap();
        let sent = app.faults.sent().len();
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.faults.sent().len(), sent);
        app.run_workers().await;
        assert_eq!(app.status(trade).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_nonce_used_on_chain_is_not_used_again(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let first = key.buy(&market, 0, "10").await.id;
        app.run_workers().await;
        forget_nonces(&app).await;
        let second = key.buy(&market, 0, "10").await.id;
        app.run_workers().await;
        let (first, second) = (app.trade(first).await, app.trade(second).await);
        assert_eq!((first.nonce, second.nonce), (Some(1), Some(2)));
        assert_eq!(second.state.status(), Status::Completed);
        app.assert_ledger_equals_chain().await;
    }
}
