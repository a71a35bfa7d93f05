//! The same scenarios with a real node over JSON-RPC. They run if `FORETELL_ANVIL` names the anvil
//! binary.

use alloy_primitives::U256;
use chain::IntentSide;
use domain::key::Tier;
use domain::trade::{State, Status};
use store::Store;
use testkit::{Anvil, Setup, TestApp, TestMarket, TestUser};

use crate::scene::Scene;

fn over(anvil: &Anvil) -> Setup {
    TestApp::with().over(anvil.provider.clone())
}

store::on_each_engine! {
    async fn a_trade_completes_on_anvil(store: Store) {
        let Some(anvil) = Anvil::start() else { return };
        let Scene { app, ada, key, market } = Scene::of(over(&anvil).on(store).start().await).await;
        let quote = app.quote(market, 0, IntentSide::BuyForUsdc, U256::from(25_000_000)).await;
        let trade = key.buy(&market, 0, "25").await;
        app.run_workers().await;
        let State::Completed(settlement) = app.trade(trade.id).await.state else { panic!("not completed") };
        assert_eq!(settlement.tokens.0, quote.tokens_wad);
        key.sell_all(&market, 0).await;
        app.stranger_buys(market, 1, "5").await;
        app.run_workers().await;
        assert_eq!(app.tokens(&ada, market, 0).await, domain::Wad::ZERO);
        app.resolve(market, 1).await;
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_dropped_by_a_reorg_is_executed_again_once(store: Store) {
        let Some(anvil) = Anvil::start() else { return };
        let app = over(&anvil).on(store).confirmations(6).start().await;
        let Scene { app, key, market, .. } = Scene::of(app).await;
        let trade = key.buy(&market, 0, "25").await;
        app.run_workers().await;
        app.stranger_buys(market, 0, "5").await;
        app.run_workers().await;
        assert_eq!((app.status(trade.id).await, app.rows().await.movements), (Status::Executing, 2));

        // The stranger's mint, approval and buy, and the trade itself.
        anvil.reorganise(4).await;
        app.workers.synchronise(&app.ctx).await;
        assert_eq!((app.status(trade.id).await, app.rows().await.movements), (Status::Executing, 0));
        app.assert_ledger_equals_chain().await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        app.mine(6).await;
        app.run_workers().await;
        assert_eq!((app.status(trade.id).await, app.rows().await.movements), (Status::Completed, 1));
        app.assert_ledger_equals_chain().await;
    }

    async fn two_processes_on_one_database_and_anvil_execute_once(store: Store) {
        let Some(anvil) = Anvil::start() else { return };
        let app = over(&anvil).on(store).lanes(2).start().await;
        let market = app.market(&["Yes", "No"]).await;
        app.workers.release(&app.ctx).await;
        let (ada, bob) = (app.user("ada").funded("1000").await, app.user("bob").funded("1000").await);
        let trades = sixty_trades(&app, [&ada, &bob], market).await;
        let processes = ["one", "two"].map(|owner| {
            let (workers, ctx, clock) = (app.another_process(owner), app.ctx.clone(), app.clock.clone());
            tokio::spawn(async move {
                for _ in 0..6 {
                    clock.advance(ctx.config.lease_ms / 2);
                    drop(workers.try_run(&ctx).await);
                }
            })
        });
        for process in processes {
            process.await.unwrap();
        }
        app.clock.advance(app.ctx.config.lease_ms);
        app.run_workers().await;
        for id in trades {
            assert_eq!(app.status(id).await, Status::Completed);
        }
        assert_eq!(app.rows().await.movements, 60);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_completes_once_its_block_is_finalized(store: Store) {
        let Some(anvil) = Anvil::start() else { return };
        let Scene { app, key, market, .. } = Scene::of(over(&anvil).on(store).finalized().start().await).await;
        let trade = key.buy(&market, 0, "25").await;
        app.run_workers().await;
        // Deep enough for the default of one confirmation.
        app.mine(3).await;
        app.run_workers().await;
        let head = app.ctx.chain.head().await.unwrap().number;
        let finalized = app.ctx.chain.finalized().await.unwrap().unwrap().number;
        assert!(finalized + 3 < head, "{finalized} of {head}");
        assert_eq!(app.status(trade.id).await, Status::Executing);

        // Two epochs.
        app.mine(64).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }
}

async fn sixty_trades(app: &TestApp, users: [&TestUser; 2], market: TestMarket) -> Vec<domain::ids::TradeId> {
    let mut trades = Vec::new();
    for user in users {
        let key = app.key(user, Tier::Mm).await;
        for n in 0..30u8 {
            trades.push(key.buy(&market, n % 2, "2").await.id);
        }
    }
    trades
}
