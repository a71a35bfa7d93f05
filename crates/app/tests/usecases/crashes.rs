//! Processes that die at any step and are replaced: every trade ends exactly once.

use alloy_primitives::U256;
use chain::Fees;
use domain::ids::TradeId;
use domain::trade::{State, Status};
use store::Store;
use store::batches::{Batch, SignedForm};
use testkit::{Fault, TestApp};

use crate::scene::Scene;

const RECEIPT: &str = "eth_getTransactionReceipt";

/// Ada has seven trades.
async fn seven_trades(store: Store) -> (Scene, Vec<TradeId>) {
    let scene = Scene::on(store).await;
    let mut trades = Vec::new();
    for n in 0..7u8 {
        trades.push(scene.key.buy(&scene.market, n % 2, "10").await.id);
    }
    (scene, trades)
}

async fn assert_all(app: &TestApp, trades: &[TradeId], status: Status) {
    for id in trades {
        assert_eq!(app.status(*id).await, status);
    }
}

async fn open_batch(app: &TestApp) -> (Batch, Vec<SignedForm>) {
    let read = app
        .ctx
        .store
        .read((), |tx, ()| {
            Box::pin(async move {
                let batch = store::batches::list_open(tx, 0, 1).await?.remove(0);
                let forms = store::batches::list_forms(tx, batch.id).await?;
                Ok((batch, forms))
            })
        })
        .await;
    read.unwrap()
}

store::on_each_engine! {
    async fn a_crash_after_claiming_executes_every_trade_once(store: Store) {
        let (Scene { mut app, .. }, trades) = seven_trades(store).await;
        app.faults.next("eth_feeHistory", Fault::LostRequest);
        app.workers.try_run(&app.ctx).await.unwrap_err();
        assert_all(&app, &trades, Status::Validating).await;
        assert_eq!(app.rows().await.batches, 0);

        app.restart("two").await;
        app.run_workers().await;
        assert_all(&app, &trades, Status::Completed).await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_crash_before_sending_executes_every_trade_once(store: Store) {
        let (Scene { mut app, .. }, trades) = seven_trades(store).await;
        let before = app.faults.sent().len();
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        assert_all(&app, &trades, Status::Executing).await;

        app.restart("two").await;
        app.run_workers().await;
        assert_all(&app, &trades, Status::Completed).await;
        let sent = app.faults.sent().split_off(before);
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0], sent[1], "the same bytes are sent again");
        app.assert_ledger_equals_chain().await;
    }

    async fn a_crash_before_the_receipt_executes_every_trade_once(store: Store) {
        let (Scene { mut app, .. }, trades) = seven_trades(store).await;
        let before = app.faults.sent().len();
        app.faults.next_send(Fault::LostAnswer);
        app.faults.next(RECEIPT, Fault::LostRequest);
        app.workers.try_run(&app.ctx).await.unwrap_err();
        assert_all(&app, &trades, Status::Executing).await;

        app.restart("two").await;
        app.run_workers().await;
        assert_all(&app, &trades, Status::Completed).await;
        assert_eq!(app.faults.sent().len(), before + 1, "what is mined is not sent again");
        app.assert_ledger_equals_chain().await;
    }

    async fn a_crash_before_recording_the_receipt_executes_once(store: Store) {
        let (Scene { mut app, .. }, trades) = seven_trades(store).await;
        let before = app.faults.sent().len();
        app.faults.always(RECEIPT, Fault::LostRequest);
        app.workers.try_run(&app.ctx).await.unwrap_err();
        // The sync ends trades from the chain's events, no matter what the executor knows.
        app.workers.synchronise(&app.ctx).await;
        assert_all(&app, &trades, Status::Completed).await;
        app.faults.heal();

        app.restart("two").await;
        app.run_workers().await;
        assert_all(&app, &trades, Status::Completed).await;
        assert_eq!(app.faults.sent().len(), before + 1);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_crash_between_reading_and_storing_a_block_loses_nothing(store: Store) {
        let (Scene { mut app, .. }, trades) = seven_trades(store).await;
        app.workers.execute(&app.ctx).await;
        for method in ["eth_getLogs", "eth_getBlockByNumber"] {
            app.faults.next(method, Fault::LostAnswer);
            app.workers.try_run(&app.ctx).await.unwrap_err();
        }
        assert_all(&app, &trades, Status::Executing).await;
        app.restart("two").await;
        app.run_workers().await;
        assert_all(&app, &trades, Status::Completed).await;
        app.assert_ledger_equals_chain().await;
    }

    async fn crashes_at_random_requests_execute_every_trade_once(store: Store) {
        const METHODS: [&str; 7] = ["eth_sendRawTransaction", RECEIPT, "eth_call", "eth_feeHistory",
            "eth_getBlockByNumber", "eth_getTransactionCount", "eth_getLogs"];
        let Scene { mut app, key, market, .. } = Scene::on(store).await;
        let mut trades = Vec::new();
        for round in 0..30 {
            for n in 0..3u8 {
                trades.push(key.buy(&market, n % 2, "2").await.id);
            }
            let [method, fault, skip] = app.ctx.random::<3>();
            let method = METHODS[usize::from(method) % METHODS.len()];
            let faults = [Fault::LostRequest, Fault::LostAnswer];
            // A few requests succeed before one fails.
            app.faults.after(usize::from(skip % 5), method, faults[usize::from(fault) % 2]);
            // The tick fails or survives the fault, depending on the request.
            drop(app.workers.try_run(&app.ctx).await);
            app.faults.heal();
            app.restart(&format!("life {round}")).await;
        }
        app.run_workers().await;
        assert_all(&app, &trades, Status::Completed).await;
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn an_unmined_batch_is_resent_and_then_replaced_at_a_higher_fee() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    let before = app.faults.sent().len();
    app.faults.every_send(Fault::NeverMined);
    app.workers.execute(&app.ctx).await;
    let (_, first) = open_batch(&app).await;
    app.advance_ms(app.ctx.config.resend_after_ms).await;
    app.workers.execute(&app.ctx).await;
    assert_eq!(open_batch(&app).await.1, first);
    app.advance_ms(app.ctx.config.replace_after_ms).await;
    app.workers.execute(&app.ctx).await;

    let (_, forms) = open_batch(&app).await;
    assert_eq!(forms.len(), 2);
    let fees = |form: &SignedForm| Fees {
        max_fee_per_gas: form.max_fee_per_gas,
        max_priority_fee_per_gas: form.max_priority_fee_per_gas,
    };
    let (newest, least) = (fees(&forms[0]), fees(&forms[1]).bumped());
    assert!(newest.max_fee_per_gas >= least.max_fee_per_gas);
    assert!(newest.max_priority_fee_per_gas >= least.max_priority_fee_per_gas);
    let sent = app.faults.sent().split_off(before);
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0], sent[1]);
    assert_ne!(sent[1], sent[2]);

    app.faults.heal();
    app.advance_ms(app.ctx.config.resend_after_ms).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_long_node_outage_does_not_raise_the_fee_without_limit() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    app.faults.every_send(Fault::LostRequest);
    app.workers.execute(&app.ctx).await;
    let (_, first) = open_batch(&app).await;
    for _ in 0..720 {
        app.advance_ms(5_000).await;
        app.workers.execute(&app.ctx).await;
    }
    let (_, forms) = open_batch(&app).await;
    let highest = forms.iter().map(|form| form.max_fee_per_gas).max().unwrap();
    assert!(highest <= first[0].max_fee_per_gas * 12, "{highest}");
    assert!(forms.len() <= 30, "{} forms", forms.len());
    app.faults.heal();
    app.advance_ms(5_000).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Failed, "its deadline has passed meanwhile");
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_batch_that_lost_its_nonce_is_resigned_and_executes_once() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    app.faults.next_send(Fault::LostRequest);
    app.workers.execute(&app.ctx).await;
    let (first, _) = open_batch(&app).await;
    let nonce = app.trade(trade.id).await.nonce;
    let executor = &app.roles.executors[0];
    app.ctx.chain.send_native(executor, executor.address(), U256::from(1)).await.unwrap();

    app.advance_ms(app.ctx.config.resend_after_ms).await;
    app.run_workers().await;
    let trade = app.trade(trade.id).await;
    assert_eq!((trade.state.status(), trade.nonce), (Status::Completed, nonce));
    assert_ne!(trade.batch_id, Some(first.id));
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn an_intent_executed_in_another_batch_is_found_by_its_event() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    app.faults.next_send(Fault::LostRequest);
    app.workers.execute(&app.ctx).await;
    let (batch, _) = open_batch(&app).await;
    // Another holder of the executor's key sends the same intents in a transaction that is not in
    // the database.
    let gate = app.ctx.chain.contracts().gate;
    let receipt = app.send(&app.roles.executors[0], gate, batch.calldata.into()).await;
    app.advance_ms(app.ctx.config.resend_after_ms).await;
    app.run_workers().await;
    let State::Completed(settlement) = app.trade(trade.id).await.state else { panic!("not completed") };
    assert_eq!(settlement.tx_hash, receipt.tx_hash);
    app.assert_ledger_equals_chain().await;
}
