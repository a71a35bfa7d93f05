//! Events that strangers can cause the contracts to log.

use alloy_primitives::{Address, U256};
use app::ledger::{AcceptReorganization, reread};
use chain::{calls, token_id};
use domain::ErrorCode;
use domain::trade::Status;
use store::Store;
use store::quarantine::Quarantine;
use testkit::{TestApp, TestMarket, hub};

use crate::scene::Scene;

/// Returns a counter of the sync.
async fn counter(app: &TestApp, name: &str) -> u64 {
    let read = app.ctx.store.read((), |tx, ()| Box::pin(store::quarantine::list_counters(tx))).await;
    read.unwrap().into_iter().find(|(counter, _)| counter == name).map_or(0, |(_, value)| value)
}

pub async fn quarantined(app: &TestApp) -> Vec<Quarantine> {
    let read = app.ctx.store.read((), |tx, ()| Box::pin(store::quarantine::list(tx, 100))).await;
    read.unwrap()
}

async fn stranger_sends(app: &TestApp, data: alloy_primitives::Bytes) -> bool {
    let (stranger, hub) = (app.roles.stranger.clone(), app.ctx.chain.contracts().hub);
    app.ctx.chain.transact(&stranger, Some(hub), data).await.is_ok()
}

/// A reproducible sequence of numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn odd_id(numbers: &mut Numbers, market: TestMarket) -> U256 {
    match numbers.below(5) {
        0 => token_id(market.number, 0),
        1 => token_id(market.number, 200),
        2 => token_id(market.number + 1_000, 1),
        3 => (U256::ONE << 200) | U256::from(0x100),
        _ => U256::MAX - U256::from(numbers.next()),
    }
}

store::on_each_engine! {
    async fn every_token_in_an_event_of_the_hub_can_be_decoded(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let id = (U256::ONE << 200) | U256::from(0x100);
        let stranger = app.roles.stranger.address();
        assert!(!stranger_sends(&app, hub::transfer_id(stranger, id, U256::ZERO)).await);
        assert!(!stranger_sends(&app, hub::transfer_id(stranger, token_id(market.number, 9), U256::ZERO)).await);
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        assert_eq!(counter(&app, "undecodable_logs").await, 0);
        assert_eq!(quarantined(&app).await, []);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_transfer_of_zero_leaves_no_row(store: Store) {
        let Scene { app, ada, market, .. } = Scene::on(store).await;
        let stranger = app.roles.stranger.address();
        let id = token_id(market.number, 1);
        assert!(!stranger_sends(&app, hub::transfer_from(ada.account, stranger, id, U256::ZERO)).await);
        assert!(stranger_sends(&app, hub::transfer_id(ada.account, id, U256::ZERO)).await);
        app.run_workers().await;
        assert_eq!((app.positions().await, app.rows().await.movements), (Vec::new(), 0));
        assert_eq!(counter(&app, "empty_transfers").await, 1);
        app.assert_ledger_equals_chain().await;
    }

    async fn the_ledger_equals_the_chain_after_any_events_of_a_stranger(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let (stranger, victim) = (app.roles.stranger.address(), ada.account);
        app.stranger_buys(market, 0, "50").await;
        key.buy(&market, 1, "20").await;
        app.run_workers().await;
        let mut numbers = Numbers(7);
        let mut sent = 0;
        for _ in 0..120 {
            let id = odd_id(&mut numbers, market);
            let amount = U256::from(numbers.below(3) * 1_000);
            let other = Address::with_last_byte(numbers.below(4) as u8);
            let data = match numbers.below(8) {
                0 | 1 => hub::transfer_id(other, id, amount),
                2 => hub::transfer_from(victim, other, id, U256::ZERO),
                3 => hub::transfer_from(stranger, stranger, id, amount),
                4 => hub::approve(other, id, amount),
                5 => hub::set_operator(other, numbers.below(2) == 0),
                6 => calls::redeem(victim, market.number, 0),
                _ => hub::sell(market, 0, U256::from(numbers.below(1_000_000_000))),
            };
            sent += usize::from(stranger_sends(&app, data).await);
        }
        assert!(sent > 40, "{sent} of 120 calls were mined");
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        assert_eq!(quarantined(&app).await, []);
        app.assert_ledger_equals_chain().await;
    }

    async fn only_a_market_with_missing_movements_is_quarantined(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let other = app.market(&["A", "B"]).await;
        key.buy(&market, 0, "30").await;
        app.run_workers().await;
        forget_movements(&app, market).await;
        key.sell_all(&market, 0).await;
        let trade = key.buy(&other, 0, "10").await;
        app.run_workers().await;

        assert_eq!(app.status(trade.id).await, Status::Completed);
        let [quarantine] = quarantined(&app).await.try_into().unwrap();
        assert_eq!((quarantine.market_id, quarantine.reason.as_str()), (market.id, "overdrawn_position"));
        let refused = key.buy(&market, 0, "1").refused().await;
        assert_eq!(refused.code, ErrorCode::MarketNotTradeable);
        assert_eq!(refused.extensions["reason"], "quarantined");
    }

    async fn a_quarantined_market_is_repaired_from_the_chain(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "30").await;
        app.run_workers().await;
        forget_movements(&app, market).await;
        let sale = key.sell_all(&market, 0).await;
        app.run_workers().await;
        assert_eq!((quarantined(&app).await.len(), app.status(sale.id).await), (1, Status::Executing));

        app.clock.advance(1_000);
        app.workers.reconcile(&app.ctx).await;
        assert_eq!(quarantined(&app).await, []);
        assert_eq!(app.status(sale.id).await, Status::Completed);
        let trade = key.buy(&market, 1, "5").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn pending_trades_of_a_quarantined_market_are_rejected(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "30").await;
        app.run_workers().await;
        let waiting = key.buy(&market, 0, "5").await;
        let detail = "planned by a test".to_owned();
        app::ledger::quarantine_drifted(&app.ctx, None, market.id, 1, &detail).await.unwrap();
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.status(waiting.id).await, Status::Rejected);
        assert_eq!(app.rows().await.reserved, 0);
    }

    async fn a_market_that_differs_from_the_chain_is_found_and_repaired(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let other = app.market(&["A", "B", "C"]).await;
        for n in 0..4u8 {
            key.buy(&market, n % 2, "12.34").await;
            key.buy(&other, n % 3, "3.21").await;
            app.run_workers().await;
        }
        let before = (app.market_row(market).await, app.positions().await);
        forget_movements(&app, market).await;
        assert_eq!(app::ledger::reconcile_all(&app.ctx).await.unwrap(), [market.id]);
        assert_eq!((app.market_row(market).await, app.positions().await), before);
        assert_eq!(app::ledger::reconcile_all(&app.ctx).await.unwrap(), []);
        app.assert_ledger_equals_chain().await;
    }

    async fn rereading_blocks_repairs_wrong_rows(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "30").await;
        app.stranger_buys(market, 1, "12").await;
        app.run_workers().await;
        let before = (app.market_row(market).await, app.positions().await);
        forget_movements(&app, market).await;
        let found = reread(&app.ctx, 1, AcceptReorganization::No).await.unwrap();
        assert_eq!((found.repaired.len(), found.quarantined.len()), (1, 0));
        assert_eq!((app.market_row(market).await, app.positions().await), before);
        assert_eq!(reread(&app.ctx, 1, AcceptReorganization::No).await.unwrap().repaired, []);
        app.assert_ledger_equals_chain().await;
    }
}

/// Deletes a market's movements and positions, as if their events had never been read.
async fn forget_movements(app: &TestApp, market: TestMarket) {
    let forgotten: Result<(), app::AppError> = app
        .ctx
        .store
        .try_write(market.id, |tx, id| {
            Box::pin(async move {
                let mut deeds = store::traders::Deeds::default();
                for movement in store::movements::list_of_market(tx, *id, "", 1_000).await? {
                    deeds.take_back(&movement);
                }
                store::movements::delete_of_market_after(tx, *id, 0).await?;
                deeds.write(tx).await?;
                let start = store::markets::ChangeBlock { block: 0, time: domain::Timestamp::from_ms(0) };
                Ok(app::ledger::rebuild(tx, *id, None, start).await?)
            })
        })
        .await;
    forgotten.unwrap();
}
