//! From pending to the chain: batches, and trades that the risk engine rejects.

use alloy_primitives::{Address, U256};
use chain::{IntentSide, SpendingLimits, calls};
use domain::risk::RiskRefusal;
use domain::trade::{Failure, State, Status};
use domain::{ErrorCode, Timestamp, Usdc};
use store::Store;
use store::trades::Trade;
use testkit::{Fault, Request, TestApp, hub};

use crate::scene::Scene;

fn limits(per_trade_usdc_atomic: u64, daily_usdc_atomic: u64, expiry_s: u32) -> SpendingLimits {
    SpendingLimits {
        per_trade_usdc_atomic,
        daily_usdc_atomic,
        sale_per_trade_usdc_atomic: daily_usdc_atomic,
        sale_daily_usdc_atomic: daily_usdc_atomic,
        expiry_s,
    }
}

fn failure(trade: &Trade) -> &Failure {
    match &trade.state {
        State::Failed(failure) => failure,
        other => panic!("not failed: {other:?}"),
    }
}

async fn assert_rejected(app: &TestApp, trade: Trade, reason: RiskRefusal) {
    let sent = app.faults.sent().len();
    // A trade can only be rejected in the light of a block that the sync has read.
    app.workers.synchronise(&app.ctx).await;
    app.workers.execute(&app.ctx).await;
    match app.trade(trade.id).await.state {
        State::Rejected(refusal) => assert_eq!(refusal.reason, reason),
        other => panic!("not rejected: {other:?}"),
    }
    assert_eq!(app.faults.sent().len(), sent, "a rejected trade never reaches the chain");
    assert_eq!(app.history(trade.id).await, [Status::Pending, Status::Validating, Status::Rejected]);
    app.workers.synchronise(&app.ctx).await;
    app.assert_ledger_equals_chain().await;
}

/// Requires at least the amount that is quoted now, so no other trade may come first.
async fn at_the_quote<'a>(scene: &'a Scene, usdc: &'a str) -> Request<'a> {
    let amount: Usdc = usdc.parse().unwrap();
    let quote = scene.app.quote(scene.market, 0, IntentSide::BuyForUsdc, U256::from(amount.atomic())).await;
    let buy = scene.key.buy(&scene.market, 0, usdc);
    buy.with(|draft| draft.min_tokens_out = Some(quote.tokens_wad.to_string()))
}

store::on_each_engine! {
    async fn one_transaction_executes_at_most_100_trades(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let mut trades = Vec::new();
        for n in 0..101u8 {
            app.clock.advance(1);
            trades.push(key.buy(&market, n % 2, "3").await.id);
        }
        app.run_workers().await;
        let mut hashes = Vec::new();
        for id in trades {
            match app.trade(id).await.state {
                State::Completed(settlement) => hashes.push(settlement.tx_hash),
                other => panic!("not completed: {other:?}"),
            }
        }
        assert!(hashes[..100].iter().all(|hash| *hash == hashes[0]));
        assert_ne!(hashes[100], hashes[0]);
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn a_bound_missed_only_on_chain_fails_only_that_trade() {
    let scene = Scene::new().await;
    let first = at_the_quote(&scene, "100").await.await;
    // Checked on the same state as the first, and executed after it.
    scene.app.clock.advance(1);
    let second = at_the_quote(&scene, "100").await.await;
    let third = scene.key.buy(&scene.market, 0, "5").await;
    let Scene { app, .. } = scene;
    app.run_workers().await;

    assert_eq!(app.status(first.id).await, Status::Completed);
    assert_eq!(app.status(third.id).await, Status::Completed);
    let second = app.trade(second.id).await;
    assert_eq!(failure(&second).code, ErrorCode::SlippageExceeded);
    let receipt = app.ctx.chain.receipt(failure(&second).tx_hash.unwrap()).await.unwrap().unwrap();
    assert_eq!((receipt.success, receipt.events.len()), (true, 3));
    let history = [Status::Pending, Status::Validating, Status::Executing, Status::Failed];
    assert_eq!(app.history(second.id).await, history);
    assert_eq!(app.rows().await.batches, 1);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_price_change_before_sending_rejects_the_trade() {
    let scene = Scene::new().await;
    let trade = at_the_quote(&scene, "100").await.await;
    scene.app.stranger_buys(scene.market, 0, "50").await;
    assert_rejected(&scene.app, trade, RiskRefusal::PriceMoved).await;
}

#[tokio::test]
async fn a_market_frozen_after_acceptance_rejects_the_trade() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    app.freeze(market).await;
    assert_rejected(&app, trade, RiskRefusal::MarketPaused).await;
}

#[tokio::test]
async fn a_missing_balance_rejects_the_trade() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    let everything = calls::transfer(Address::repeat_byte(9), U256::from(10_000_000_000u64));
    app.as_owner(&ada, app.ctx.chain.contracts().usdc, everything).await;
    assert_rejected(&app, trade, RiskRefusal::InsufficientBalance).await;
}

#[tokio::test]
async fn missing_tokens_reject_the_sale() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    let sale = key.sell(&market, 0, "20").await;
    let held = app.tokens(&ada, market, 0).await;
    let everything = hub::transfer(Address::repeat_byte(9), market, 0, held.0);
    app.as_owner(&ada, app.ctx.chain.contracts().hub, everything).await;
    assert_rejected(&app, sale, RiskRefusal::InsufficientBalance).await;
}

#[tokio::test]
async fn a_sale_of_an_empty_position_is_rejected() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    let sale = key.sell_all(&market, 0).await;
    let held = app.tokens(&ada, market, 0).await;
    let everything = hub::transfer(Address::repeat_byte(9), market, 0, held.0);
    app.as_owner(&ada, app.ctx.chain.contracts().hub, everything).await;
    assert_rejected(&app, sale, RiskRefusal::InsufficientBalance).await;
}

#[tokio::test]
async fn a_delegation_revoked_after_acceptance_rejects_the_trade() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    app.disable(&ada, &key).await;
    assert_rejected(&app, trade, RiskRefusal::DelegationInactive).await;
}

#[tokio::test]
async fn caps_lowered_on_chain_after_acceptance_reject_the_trade() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let gate = app.ctx.chain.contracts().gate;
    let expiry = u32::try_from(app.ctx.now().s()).unwrap() + 86_400;
    let trade = key.buy(&market, 0, "10").await;
    app.as_owner(&ada, gate, calls::set_policy(0, limits(9_999_999, 100_000_000, expiry))).await;
    assert_rejected(&app, trade, RiskRefusal::TradeTooLarge).await;
    let trade = key.buy(&market, 0, "10").await;
    app.as_owner(&ada, gate, calls::set_policy(0, limits(100_000_000, 9_999_999, expiry))).await;
    assert_rejected(&app, trade, RiskRefusal::DailyLimitExceeded).await;
}

#[tokio::test]
async fn trades_of_one_batch_share_the_balance_and_the_last_one_is_rejected() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let mut trades = Vec::new();
    for _ in 0..3 {
        trades.push(key.buy(&market, 0, "100").await.id);
    }
    let most = calls::transfer(Address::repeat_byte(9), U256::from(9_750_000_000u64));
    app.as_owner(&ada, app.ctx.chain.contracts().usdc, most).await;
    app.workers.synchronise(&app.ctx).await;
    app.run_workers().await;
    let mut statuses = Vec::new();
    for id in trades {
        statuses.push(app.status(id).await);
    }
    assert_eq!(statuses, [Status::Completed, Status::Completed, Status::Rejected]);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_trade_past_its_deadline_fails_and_is_never_sent() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let in_a_minute: Timestamp = app.ctx.now().plus_ms(60_000);
    let with_deadline =
        key.buy(&market, 0, "10").with(|draft| draft.deadline = Some(in_a_minute.to_string())).await;
    let without = key.buy(&market, 0, "10").await;
    app.advance_ms(60_000).await;
    app.run_workers().await;
    assert_eq!(failure(&app.trade(with_deadline.id).await).code, ErrorCode::RequestTimeout);
    assert_eq!(failure(&app.trade(with_deadline.id).await).tx_hash, None);
    assert_eq!(app.status(without.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn the_chain_enforces_a_deadline_that_passes_after_sending() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "10").await;
    app.faults.next_send(Fault::LostRequest);
    app.workers.execute(&app.ctx).await;
    assert_eq!(app.status(trade.id).await, Status::Executing);
    app.advance_ms(app.ctx.config.intent_lifetime_ms + 1_000).await;
    app.run_workers().await;
    let trade = app.trade(trade.id).await;
    assert_eq!(failure(&trade).code, ErrorCode::RequestTimeout);
    assert!(failure(&trade).tx_hash.is_some());
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn lanes_work_in_parallel_and_an_account_keeps_its_lane() {
    let app = TestApp::with().lanes(3).start().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut lanes = std::collections::HashSet::new();
    for n in 0..8 {
        let user = app.user(&format!("user {n}")).funded("100").await;
        let key = app.key(&user, domain::key::Tier::Mm).await;
        let one = key.buy(&market, 0, "10").await;
        let two = key.buy(&market, 1, "10").await;
        assert_eq!(one.lane, two.lane);
        lanes.insert(one.lane);
    }
    assert!(lanes.len() > 1);
    app.run_workers().await;
    assert_eq!(app.rows().await.movements, 16);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_paused_gate_delays_trades_without_repeated_sends() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let gate = app.ctx.chain.contracts().gate;
    let trade = key.buy(&market, 0, "10").await;
    app.send(&app.roles.guardian, gate, calls::set_paused(true)).await;
    let sent = app.faults.sent().len();
    for _ in 0..20 {
        app.run_workers().await;
    }
    assert_eq!(app.faults.sent().len(), sent);
    assert!(!app.status(trade.id).await.is_terminal());
    app.send(&app.roles.guardian, gate, calls::set_paused(false)).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_reverted_batch_is_sent_again_with_the_same_intents() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let gate = app.ctx.chain.contracts().gate;
    let mut trades = Vec::new();
    for _ in 0..3 {
        trades.push(key.buy(&market, 0, "10").await.id);
    }
    // The guardian pauses the Gate while the batch is in flight.
    let held = app.faults.hold("eth_sendRawTransaction");
    let sends = async {
        app.workers.execute(&app.ctx).await;
    };
    let pauses = async {
        held.reached().await;
        app.send(&app.roles.guardian, gate, calls::set_paused(true)).await;
        held.release();
    };
    tokio::join!(sends, pauses);
    let mut nonces = Vec::new();
    for id in &trades {
        nonces.push(app.trade(*id).await.nonce.unwrap());
    }
    let sent = app.faults.sent().len();
    app.run_workers().await;
    assert_eq!(app.faults.sent().len(), sent, "nothing is sent while the Gate is paused");
    app.send(&app.roles.guardian, gate, calls::set_paused(false)).await;
    let fourth = key.buy(&market, 0, "10").await;
    app.run_workers().await;
    for (id, nonce) in trades.iter().zip(nonces) {
        let trade = app.trade(*id).await;
        assert_eq!((trade.state.status(), trade.nonce), (Status::Completed, Some(nonce)));
    }
    assert_eq!(app.status(fourth.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_trade_above_the_hourly_cap_on_chain_fails_with_the_dependency() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let gate = app.ctx.chain.contracts().gate;
    let fits = key.buy(&market, 0, "10").await;
    app.clock.advance(1);
    let does_not = key.buy(&market, 0, "10").await;
    // The cap is lowered after the batch was signed.
    let held = app.faults.hold("eth_sendRawTransaction");
    let lower = async {
        held.reached().await;
        app.send(
            &app.roles.guardian,
            gate,
            calls::lower_executor(app.roles.executors[0].address(), 15_000_000),
        )
        .await;
        held.release();
    };
    tokio::join!(app.workers.execute(&app.ctx), lower);
    app.run_workers().await;
    assert_eq!(app.status(fits.id).await, Status::Completed);
    assert_eq!(failure(&app.trade(does_not.id).await).code, ErrorCode::DependencyUnavailable);
    app.assert_ledger_equals_chain().await;
}
