//! Nodes with outdated, empty or contradictory responses.

use domain::ErrorCode;
use domain::trade::Status;
use store::Store;
use testkit::{Fault, TestApp};

use crate::hostile_events::quarantined;
use crate::scene::Scene;

const LOGS: &str = "eth_getLogs";
const RECEIPTS: &str = "eth_getBlockReceipts";

async fn final_at(store: Store, confirmations: u64) -> Scene {
    Scene::of(TestApp::with().on(store).confirmations(confirmations).start().await).await
}

async fn settled(app: &TestApp) -> Option<u64> {
    let read = app.ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    read.unwrap()
}

store::on_each_engine! {
    async fn logs_missing_from_every_answer_are_found_in_receipts(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        app.run_workers().await;
        app.faults.always(LOGS, Fault::Answer("[]"));
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.faults.heal();
        app.assert_ledger_equals_chain().await;
    }

    async fn an_empty_block_is_read_again_before_it_is_settled(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        app.run_workers().await;
        app.faults.next(LOGS, Fault::Answer("[]"));
        app.faults.next(RECEIPTS, Fault::UnknownMethod);
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_hidden_event_is_found_when_its_batch_has_ended(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        app.run_workers().await;
        app.faults.always(LOGS, Fault::Answer("[]"));
        app.faults.always(RECEIPTS, Fault::UnknownMethod);
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.mine(2).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Executing);

        app.faults.heal();
        app.clock.advance(6_000);
        app.workers.reconcile(&app.ctx).await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_hidden_failure_is_found_when_its_batch_has_ended(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        app.run_workers().await;
        let quote = app.quote(market, 0, chain::IntentSide::BuyForUsdc, alloy_primitives::U256::from(10_000_000)).await;
        let least = Some(quote.tokens_wad.to_string());
        let trade = key.buy(&market, 0, "10").with(|draft| draft.min_tokens_out = least).await;
        app.faults.next_send(Fault::LostRequest);
        app.run_workers().await;
        app.stranger_buys(market, 0, "50").await;
        app.workers.synchronise(&app.ctx).await;
        app.faults.always(LOGS, Fault::Answer("[]"));
        app.faults.always(RECEIPTS, Fault::UnknownMethod);
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Executing);

        app.faults.heal();
        app.clock.advance(6_000);
        app.workers.reconcile(&app.ctx).await;
        assert_eq!(app.status(trade.id).await, Status::Failed);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_node_that_falls_behind_reverts_nothing(store: Store) {
        let Scene { app, key, market, .. } = final_at(store, 5).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.mine(30).await;
        let trade = key.buy(&market, 1, "5").await;
        app.run_workers().await;
        app.mine(2).await;
        app.run_workers().await;
        let before = (app.market_row(market).await, app.positions().await, app.rows().await.movements);
        let head = app.ctx.chain.head().await.unwrap().number;

        for behind in [1, 5, 20, head - 1] {
            app.faults.lag_at(head - behind);
            let waits = app.workers.try_run(&app.ctx).await.unwrap_err();
            assert_eq!(waits.code, ErrorCode::DependencyUnavailable, "{waits}");
            let after = (app.market_row(market).await, app.positions().await, app.rows().await.movements);
            assert_eq!(after, before, "{behind} blocks behind");
        }
        app.faults.heal();
        app.mine(5).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn settled_blocks_are_never_reverted(store: Store) {
        let app = TestApp::with().on(store).forkable().confirmations(2).start().await;
        let Scene { app, key, market, .. } = Scene::of(app).await;
        app.run_workers().await;
        app.branches().part();
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.mine(3).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        let before = (app.market_row(market).await, app.positions().await, settled(&app).await);

        app.branches().switch();
        app.mine(12).await;
        let waits = app.workers.try_run(&app.ctx).await.unwrap_err();
        assert_eq!(waits.code, ErrorCode::DependencyUnavailable, "{waits}");
        assert_eq!((app.market_row(market).await, app.positions().await, settled(&app).await), before);

        // The node returns to the settled branch.
        app.branches().switch();
        app.mine(1).await;
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn logs_of_another_block_are_ignored(store: Store) {
        const OTHER: &str = r#"[{"address":"0x0000000000000000000000000000000000000001","topics":[],"data":"0x",
            "blockNumber":"0x1","blockHash":"0x0000000000000000000000000000000000000000000000000000000000000001",
            "transactionHash":"0x0000000000000000000000000000000000000000000000000000000000000002",
            "transactionIndex":"0x0","logIndex":"0x0","removed":false}]"#;
        let Scene { app, key, market, .. } = Scene::on(store).await;
        app.run_workers().await;
        let trade = key.buy(&market, 0, "10").await;
        app.faults.next(LOGS, Fault::Answer(OTHER));
        let refused = app.workers.try_run(&app.ctx).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::DependencyUnavailable, "{refused}");
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        assert_eq!(quarantined(&app).await, []);
        app.assert_ledger_equals_chain().await;
    }
}
