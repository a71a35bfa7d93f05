//! The content of traces. The reconciler checks that every trace is complete, without gaps, and
//! ends like its trade.

use domain::ids::{CorrelationId, TradeId};
use domain::key::Tier;
use store::Store;
use store::testing::sqlite;
use store::trades::Traced;
use testkit::{Fault, TestApp, TestUser};

use crate::scene::Scene;

async fn trace(app: &TestApp, id: TradeId) -> Vec<Traced> {
    let read = app.ctx.store.read(id, |tx, id| Box::pin(store::trades::list_trace(tx, *id))).await;
    read.unwrap()
}

async fn kinds(app: &TestApp, id: TradeId) -> Vec<String> {
    trace(app, id).await.into_iter().map(|event| format!("{} {}", event.stage, event.kind)).collect()
}

async fn traced(app: &TestApp, user: &TestUser, id: CorrelationId) -> Option<TradeId> {
    let found = app
        .ctx
        .store
        .read((user.id, id), |tx, (user_id, id)| Box::pin(store::trades::find_traced(tx, *user_id, *id)))
        .await;
    found.unwrap().map(|(trade_id, _)| trade_id)
}

store::on_each_engine! {
    async fn a_trace_covers_intent_funding_and_execution(store: Store) {
        let Scene { app, key, market, .. } = Scene::gated(store).await;
        let trade = key.buy(&market, 0, "100").await;
        key.confirm(&trade, &key.token(&trade)).await.unwrap();
        app.run_workers().await;
        let expected = [
            "intent trade.held",
            "funding funds.reserved",
            "intent trade.confirmed",
            "funding trade.validating",
            "execution trade.executing",
            "execution batch.signed",
            "execution trade.completed",
        ];
        assert_eq!(kinds(&app, trade.id).await, expected);
        let sale = key.sell(&market, 0, "1").await;
        app.run_workers().await;
        // A sale reserves nothing.
        assert_eq!(kinds(&app, sale.id).await[..2], ["intent trade.accepted", "funding trade.validating"]);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trace_reports_replaced_and_lost_batches(store: Store) {
        let Scene { mut app, key, market, .. } = Scene::gated(store).await;
        let replaced = key.buy(&market, 0, "10").await;
        app.faults.every_send(Fault::NeverMined);
        app.workers.execute(&app.ctx).await;
        app.advance_ms(app.ctx.config.replace_after_ms).await;
        app.workers.execute(&app.ctx).await;
        app.faults.heal();
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        let told = kinds(&app, replaced.id).await;
        assert_eq!(told[told.len() - 3..], [
            "execution batch.signed", "execution batch.replaced", "execution trade.completed",
        ]);
        let events = trace(&app, replaced.id).await;
        let hash = |kind: &str| events.iter().find(|event| event.kind == kind).unwrap().attributes["txHash"].clone();
        assert_ne!(hash("batch.signed"), hash("batch.replaced"));
        assert_eq!(hash("batch.replaced"), hash("trade.completed"));

        let displaced = key.buy(&market, 0, "10").await;
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        let executor = &app.roles.executors[0];
        app.ctx.chain.send_native(executor, executor.address(), alloy_primitives::U256::from(1)).await.unwrap();
        app.restart("two").await;
        app.run_workers().await;
        let told = kinds(&app, displaced.id).await;
        assert_eq!(told[told.len() - 4..], [
            "execution batch.signed", "execution batch.lost", "execution batch.signed", "execution trade.completed",
        ]);
        app.assert_ledger_equals_chain().await;
    }

    async fn unspent_usdc_of_a_buy_is_released_and_reported(store: Store) {
        let Scene { app, key, market, .. } = Scene::gated(store).await;
        let trade = key.buy(&market, 0, "10").in_tokens().await;
        app.run_workers().await;
        let events = trace(&app, trade.id).await;
        let amount = |kind: &str, name: &str| {
            let event = events.iter().find(|event| event.kind == kind).unwrap();
            event.attributes[name].as_str().unwrap().parse::<u64>().unwrap()
        };
        let (reserved, spent) = (amount("funds.reserved", "reservedUsdc"), amount("trade.completed", "usdcAmount"));
        assert_eq!(amount("funds.released", "releasedUsdc"), reserved - spent);
        assert_eq!(events.last().unwrap().kind, "funds.released");
    }

    async fn a_shared_trace_shows_the_newest_of_its_trades(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let bob = app.user("bob").funded("100").await;
        let bobs = app.key(&bob, Tier::Mm).await;
        let shared = CorrelationId(0xfeed);
        let one = key.buy(&market, 0, "1").traced(shared).await;
        let two = key.buy(&market, 0, "1").traced(shared).await;
        app.advance_ms(1_000).await;
        let theirs = bobs.buy(&market, 0, "1").traced(shared).await;
        assert_eq!((one.correlation_id, two.correlation_id), (shared, shared));
        assert_eq!(traced(&app, &ada, shared).await, Some(two.id));
        assert_eq!(traced(&app, &ada, CorrelationId::of(one.id)).await, Some(one.id));
        assert_eq!(traced(&app, &bob, shared).await, Some(theirs.id));
        assert_eq!(traced(&app, &bob, CorrelationId::of(one.id)).await, None);
        // A client that uses another user's trade as the correlation id only finds its own trade.
        let named = bobs.buy(&market, 0, "1").traced(CorrelationId::of(one.id)).await;
        assert_eq!(traced(&app, &bob, CorrelationId::of(one.id)).await, Some(named.id));
        assert_eq!(traced(&app, &ada, CorrelationId::of(one.id)).await, Some(one.id));
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn a_trace_can_be_read_while_the_trade_runs() {
    let Scene { app, key, market, .. } = Scene::gated(sqlite().await).await;
    let trade = key.buy(&market, 0, "10").await;
    assert_eq!(kinds(&app, trade.id).await.len(), 2);
    app.faults.next("eth_feeHistory", Fault::LostRequest);
    app.workers.try_run(&app.ctx).await.unwrap_err();
    assert_eq!(kinds(&app, trade.id).await.last().unwrap(), "funding trade.validating");
}
