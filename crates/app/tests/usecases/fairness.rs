//! Users of one lane take turns, no matter how many trades each of them has queued.

use std::collections::HashMap;

use app::worker::Worker;
use domain::ids::TradeId;
use domain::key::Tier;
use domain::trade::Status;
use store::{Store, StoreError};
use testkit::{TestApp, TestKey, TestMarket};

use crate::scene::Scene;

async fn buys(app: &TestApp, key: &TestKey, market: &TestMarket, count: usize) -> Vec<TradeId> {
    let mut trades = Vec::with_capacity(count);
    for _ in 0..count {
        app.clock.advance(1);
        trades.push(key.buy(market, 0, "1").await.id);
    }
    trades
}

/// Returns the trades in the order in which the chain executed them.
async fn made(app: &TestApp) -> Vec<TradeId> {
    const SQL: &str = "SELECT trade_id FROM movements WHERE trade_id IS NOT NULL ORDER BY id";
    let read: Result<Vec<TradeId>, StoreError> =
        app.ctx.store.read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| row.get("trade_id")))).await;
    read.unwrap()
}

store::on_each_engine! {
    async fn the_first_trades_of_all_users_precede_their_second_ones(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let (bob, cleo) = (app.user("bob").funded("100").await, app.user("cleo").funded("100").await);
        let (bob, cleo) = (app.key(&bob, Tier::Mm).await, app.key(&cleo, Tier::Mm).await);
        let a = buys(&app, &key, &market, 4).await;
        let b = buys(&app, &bob, &market, 2).await;
        let c = buys(&app, &cleo, &market, 1).await;
        app.run_workers().await;
        assert_eq!(made(&app).await, [a[0], b[0], c[0], a[1], b[1], a[2], a[3]]);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_user_with_a_long_queue_delays_others_by_at_most_one_batch(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let bob = app.user("bob").funded("100").await;
        let bob = app.key(&bob, Tier::Mm).await;
        let many = buys(&app, &key, &market, 250).await;
        let executor = &app.workers.executors[0];
        executor.tick(&app.ctx).await.unwrap();
        let late = buys(&app, &bob, &market, 3).await;
        executor.tick(&app.ctx).await.unwrap();
        for id in late {
            assert_eq!(app.status(id).await, Status::Executing);
        }
        let mut counts: HashMap<Status, usize> = HashMap::new();
        for id in many {
            *counts.entry(app.status(id).await).or_default() += 1;
        }
        assert_eq!((counts[&Status::Executing], counts[&Status::Pending]), (197, 53));
        app.run_workers().await;
        assert_eq!(app.open_trades().await, 0);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_confirmed_trade_joins_the_queue_when_it_is_confirmed(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let bob = app.user("bob").funded("100").await;
        let (bob, second) = (app.key(&bob, Tier::Mm).await, app.key(&ada, Tier::Mm).await);
        let held = key.buy(&market, 0, "100").await;
        let a = buys(&app, &second, &market, 2).await;
        let b = buys(&app, &bob, &market, 3).await;
        key.confirm(&held, &key.token(&held)).await.unwrap();
        app.run_workers().await;
        assert_eq!(made(&app).await, [a[0], b[0], a[1], b[1], held.id, b[2]]);
        app.assert_ledger_equals_chain().await;
    }
}
