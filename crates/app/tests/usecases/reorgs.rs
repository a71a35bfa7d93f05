//! Reorganizations.

use alloy_primitives::U256;
use app::ledger::{self, AcceptReorganization};
use app::markets;
use chain::{Block, SendOutcome};
use domain::key::Tier;
use domain::market::MarketStatus;
use domain::trade::{State, Status};
use store::Store;
use testkit::{Fault, TestApp, TestKey};

use crate::scene::Scene;

/// The confirmations that make a block final: more than any branch here has.
const FINAL: u32 = 20;

async fn forkable(store: Store, confirmations: u32) -> Scene {
    Scene::of(TestApp::with().on(store).forkable().confirmations(u64::from(confirmations)).start().await)
        .await
}

async fn head(app: &TestApp) -> Block {
    app.ctx.chain.head().await.unwrap()
}

store::on_each_engine! {
    async fn events_of_an_abandoned_branch_are_reverted(store: Store) {
        let Scene { app, key, market, .. } = forkable(store, FINAL).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.mine(FINAL).await;
        app.run_workers().await;
        let before = (app.market_row(market).await, app.positions().await);

        app.branches().part();
        app.stranger_buys(market, 0, "50").await;
        app.freeze(market).await;
        app.run_workers().await;
        assert_eq!(app.rows().await.movements, 2);
        assert_eq!(app.market_row(market).await.0.status, MarketStatus::Frozen);

        app.branches().switch();
        app.mine(FINAL).await;
        app.run_workers().await;
        assert_eq!(app.rows().await.movements, 1);
        let (after, outcomes) = app.market_row(market).await;
        assert_eq!((after.status, after.frozen_at), (MarketStatus::Open, None));
        assert_eq!((after.cost, after.volume), (before.0.0.cost, before.0.0.volume));
        assert_eq!((outcomes, app.positions().await), (before.0.1, before.1));
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_of_an_abandoned_branch_executes_once_on_the_other(store: Store) {
        let Scene { app, key, market, .. } = forkable(store, FINAL).await;
        app.branches().part();
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.mine(1).await;
        app.run_workers().await;
        assert_eq!((app.status(trade.id).await, app.rows().await.movements), (Status::Executing, 1));
        let abandoned = head(&app).await;

        app.branches().switch();
        // The other branch is longer, moves the price, and does not contain the trade.
        app.stranger_buys(market, 0, "50").await;
        app.mine(FINAL).await;
        assert!(head(&app).await.number > abandoned.number);
        app.workers.synchronise(&app.ctx).await;
        assert_eq!(app.status(trade.id).await, Status::Executing);
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        app.mine(FINAL).await;
        app.run_workers().await;

        let State::Completed(settlement) = app.trade(trade.id).await.state else { panic!("not completed") };
        assert!(settlement.block_number > abandoned.number);
        assert_eq!(app.rows().await.movements, 2);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_in_both_branches_completes_with_the_last_one(store: Store) {
        let Scene { app, key, market, .. } = forkable(store, FINAL).await;
        app.branches().part();
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        let raw = app.faults.sent().pop().unwrap();
        app.branches().switch();
        app.stranger_buys(market, 0, "50").await;
        let quote = app.quote(market, 0, chain::IntentSide::BuyForUsdc, U256::from(10_000_000)).await;
        let raw = alloy_primitives::hex::decode(raw).unwrap();
        assert_eq!(app.ctx.chain.send_raw(&raw).await.unwrap(), SendOutcome::Accepted);
        app.mine(FINAL).await;
        app.run_workers().await;
        let State::Completed(settlement) = app.trade(trade.id).await.state else { panic!("not completed") };
        assert_eq!(settlement.tokens.0, quote.tokens_wad);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_failure_of_an_abandoned_branch_is_reverted(store: Store) {
        let Scene { app, key, market, .. } = forkable(store, FINAL).await;
        let quote = app.quote(market, 0, chain::IntentSide::BuyForUsdc, U256::from(10_000_000)).await;
        app.branches().part();
        let least = Some(quote.tokens_wad.to_string());
        let trade = key.buy(&market, 0, "10").with(|draft| draft.min_tokens_out = least).await;
        app.faults.next_send(Fault::LostRequest);
        app.run_workers().await;
        app.stranger_buys(market, 0, "50").await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        // The price has moved: on this branch the trade has failed, but the block is not final.
        assert_eq!(app.status(trade.id).await, Status::Executing);

        app.branches().switch();
        app.mine(FINAL).await;
        app.workers.synchronise(&app.ctx).await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        app.mine(FINAL).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn markets_of_an_abandoned_branch_are_created_again(store: Store) {
        let Scene { app, key, .. } = forkable(store, FINAL).await;
        app.branches().part();
        let (one, two) = (app.market(&["Yes", "No"]).await, app.market(&["A", "B", "C"]).await);
        app.resolve(one, 0).await;
        app.stranger_buys(two, 2, "50").await;
        app.run_workers().await;
        app.branches().switch();
        app.mine(FINAL).await;
        app.run_workers().await;
        assert_eq!(app.rows().await.movements, 0);
        let refused = key.buy(&one, 0, "1").refused().await;
        assert_eq!(refused.code, domain::ErrorCode::MarketNotFound);

        // A repeated creation finds its rows, but the numbers on chain are swapped.
        for (market, labels) in [(two, &["A", "B", "C"][..]), (one, &["Yes", "No"][..])] {
            let new = markets::NewMarket { id: Some(market.id), ..testkit::market_of(&app, labels) };
            markets::create(&app.ctx, &app.roles.resolver, new).await.unwrap();
        }
        app.run_workers().await;
        let (row, _) = app.market_row(one).await;
        assert_eq!(row.chain_market_id, Some(two.number));
        assert_eq!((row.status, row.payouts, row.resolution_tx_hash), (MarketStatus::Open, None, None));
        let trade = key.buy(&one, 0, "5").await;
        app.run_workers().await;
        app.mine(FINAL).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn markets_in_both_branches_get_the_numbers_of_the_last(store: Store) {
        let Scene { app, .. } = forkable(store, FINAL).await;
        app.branches().part();
        let (one, two) = (app.market(&["Yes", "No"]).await, app.market(&["A", "B", "C"]).await);
        app.stranger_buys(one, 1, "7").await;
        app.run_workers().await;
        app.branches().switch();
        for (market, labels) in [(two, &["A", "B", "C"][..]), (one, &["Yes", "No"][..])] {
            let new = markets::NewMarket { id: Some(market.id), ..testkit::market_of(&app, labels) };
            markets::create(&app.ctx, &app.roles.resolver, new).await.unwrap();
        }
        app.mine(FINAL).await;
        app.run_workers().await;
        assert_eq!(app.market_row(one).await.0.chain_market_id, Some(two.number));
        assert_eq!(app.market_row(two).await.0.chain_market_id, Some(one.number));
        app.assert_ledger_equals_chain().await;
    }

    async fn a_branch_abandoned_while_reading_leaves_nothing(store: Store) {
        let Scene { app, market, .. } = forkable(store, FINAL).await;
        app.branches().part();
        app.stranger_buys(market, 0, "50").await;
        // The other branch has the same length and different content.
        app.branches().switch();
        app.stranger_buys(market, 1, "20").await;
        app.branches().switch();
        let held = app.faults.hold("eth_getLogs");
        let workers = app.another_process("reader");
        app.workers.release(&app.ctx).await;
        let ctx = app.ctx.clone();
        // It has read the head of one branch, and will read the events of the other.
        let reads = tokio::spawn(async move { drop(workers.try_run(&ctx).await); workers });
        held.reached().await;
        app.branches().switch();
        held.release();
        let workers = reads.await.unwrap();
        app.branches().switch();
        app.mine(FINAL).await;
        workers.run(&app.ctx).await;
        workers.run(&app.ctx).await;
        app.assert_ledger_equals_chain().await;
    }

    async fn earlier_blocks_may_change_while_the_next_are_read(store: Store) {
        let Scene { app, market, .. } = forkable(store, FINAL).await;
        app.branches().part();
        app.stranger_buys(market, 0, "50").await;
        app.run_workers().await;
        app.mine(FINAL).await;
        app.branches().switch();
        app.stranger_buys(market, 1, "20").await;
        app.mine(FINAL).await;
        app.branches().switch();
        // It requests the head and finds the last block read. Then the chain changes, and all new
        // blocks that it reads are of another branch, on top of a block that is not theirs.
        let held = app.faults.hold_after(2, "eth_getBlockByNumber");
        let workers = app.another_process("reader");
        app.workers.release(&app.ctx).await;
        let ctx = app.ctx.clone();
        let reads = tokio::spawn(async move { drop(workers.try_run(&ctx).await); workers });
        held.reached().await;
        app.branches().switch();
        held.release();
        let workers = reads.await.unwrap();
        workers.run(&app.ctx).await;
        app.assert_ledger_equals_chain().await;
    }
}

/// Creates a key of a user whose trades use another lane than `other`'s.
async fn key_of_another_lane(app: &TestApp, other: &TestKey, market: &testkit::TestMarket) -> TestKey {
    let lane = other.buy(market, 0, "1").await.lane;
    for n in 0..50 {
        let user = app.user(&format!("user {n}")).funded("1000").await;
        let key = app.key(&user, Tier::Mm).await;
        if key.buy(market, 0, "1").await.lane != lane {
            return key;
        }
    }
    panic!("all accounts have one lane");
}

#[tokio::test]
async fn trades_in_replaced_settled_blocks_complete_on_acceptance() {
    let app = TestApp::with().forkable().lanes(2).start().await;
    let Scene { app, key, market, .. } = Scene::of(app).await;
    let bobs = key_of_another_lane(&app, &key, &market).await;
    app.run_workers().await;
    app.branches().part();
    let one = key.buy(&market, 0, "10").await;
    app.run_workers().await;
    let raw = alloy_primitives::hex::decode(app.faults.sent().pop().unwrap()).unwrap();
    app.mine(5).await;
    app.run_workers().await;
    assert_eq!(app.status(one.id).await, Status::Completed);
    let two = bobs.buy(&market, 1, "10").await;
    app.faults.next_send(Fault::LostRequest);
    app.run_workers().await;
    assert_eq!(app.status(two.id).await, Status::Executing);

    // The chain violates its finality. The new blocks contain the first trade again, and the second
    // one too.
    let settled = head(&app).await.number;
    app.branches().switch();
    app.mine(1).await;
    assert_eq!(app.ctx.chain.send_raw(&raw).await.unwrap(), SendOutcome::Accepted);
    while head(&app).await.number <= settled {
        app.mine(1).await;
    }
    assert!(app.workers.try_run(&app.ctx).await.is_err());
    let refused = ledger::reread(&app.ctx, 1, AcceptReorganization::No).await.unwrap_err();
    assert_eq!(refused.code, domain::ErrorCode::DependencyUnavailable, "{refused}");
    assert_eq!(app.status(one.id).await, Status::Completed);

    ledger::reread(&app.ctx, 1, AcceptReorganization::Yes).await.unwrap();
    app.clock.advance(app.ctx.config.resend_after_ms);
    app.run_workers().await;
    app.run_workers().await;
    assert_eq!(app.status(two.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}
