//! Trades that wait before they are signed: for lower fees, or for volume in the contracts' hour.
//! They cost no gas, and other trades continue.

use domain::ErrorCode;
use domain::Usdc;
use domain::ids::TradeId;
use domain::key::Tier;
use domain::time::MINUTE_MS;
use domain::trade::{HoldReason, State, Status};
use store::Store;
use store::trades::Traced;
use testkit::{Fault, TestApp, TestKey};

use crate::scene::Scene;

const GWEI: u128 = 1_000_000_000;
/// A base fee of 100 gwei.
const HIGH_FEES: &str = r#"{"oldestBlock":"0x1","baseFeePerGas":["0x174876e800","0x174876e800"],"gasUsedRatio":[0.5],"reward":[["0x3b9aca00"]]}"#;

async fn trace(app: &TestApp, id: TradeId) -> Vec<Traced> {
    let read = app.ctx.store.read(id, |tx, id| Box::pin(store::trades::list_trace(tx, *id))).await;
    read.unwrap()
}

/// Returns the reasons for waiting in the trade's trace.
async fn holds(app: &TestApp, id: TradeId) -> Vec<String> {
    let trace = trace(app, id).await;
    let held = trace.into_iter().filter(|event| event.kind == "signing.held");
    held.map(|event| event.attributes["reason"].as_str().unwrap().to_owned()).collect()
}

async fn count_held(app: &TestApp) -> Vec<(HoldReason, u64)> {
    let counted = app.ctx.store.read((), |tx, ()| Box::pin(store::trades::count_held(tx))).await;
    counted.unwrap()
}

async fn expiry_of(app: &TestApp, id: TradeId) -> (ErrorCode, String) {
    match app.trade(id).await.state {
        State::Failed(failure) => {
            assert_eq!(failure.tx_hash, None, "it never reached the chain");
            (failure.code, failure.message)
        }
        state => panic!("not failed: {state:?}"),
    }
}

async fn scene_with_ceiling(store: Store) -> Scene {
    Scene::of(TestApp::with().on(store).max_fee_per_gas(50 * GWEI).start().await).await
}

/// Creates Ada's market with an hourly cap of 100 USDC, and keys of Bob and Cleo.
async fn scene_with_cap(store: Store) -> (Scene, TestKey, TestKey) {
    let app = TestApp::with().on(store).hourly_volume(Usdc::from_whole(100)).start().await;
    let scene = Scene::of(app).await;
    let bob = scene.app.user("bob").funded("10000").await;
    let cleo = scene.app.user("cleo").funded("10000").await;
    let (bob, cleo) = (scene.app.key(&bob, Tier::Mm).await, scene.app.key(&cleo, Tier::Mm).await);
    (scene, bob, cleo)
}

store::on_each_engine! {
    async fn trades_wait_while_fees_are_above_the_ceiling(store: Store) {
        let Scene { app, key, market, .. } = scene_with_ceiling(store).await;
        let sent = app.faults.sent().len();
        app.faults.always("eth_feeHistory", Fault::Answer(HIGH_FEES));
        let trade = key.buy(&market, 0, "10").await;
        for _ in 0..3 {
            app.run_workers().await;
            app.advance_ms(1_000).await;
        }
        assert_eq!(app.status(trade.id).await, Status::Pending);
        assert_eq!(holds(&app, trade.id).await, ["fee_ceiling"]);
        assert_eq!(count_held(&app).await, [(HoldReason::FeeCeiling, 1)]);
        assert_eq!(app.faults.sent().len(), sent);
        app.faults.heal();
        app.advance_ms(1_000).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        assert!(count_held(&app).await.is_empty());
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_waiting_for_fees_fails_at_its_deadline_with_the_reason(store: Store) {
        let Scene { app, ada, key, market } = scene_with_ceiling(store).await;
        let sent = app.faults.sent().len();
        app.faults.always("eth_feeHistory", Fault::Answer(HIGH_FEES));
        let trade = key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.advance_ms(app.ctx.config.intent_lifetime_ms).await;
        app.run_workers().await;
        let message = "The deadline passed while the chain's fees were above the operator's limit.";
        assert_eq!(expiry_of(&app, trade.id).await, (ErrorCode::RequestTimeout, message.to_owned()));
        assert_eq!((app.reserved(&ada).await, app.spent(&key).await), (Usdc::ZERO, Usdc::ZERO));
        assert_eq!(app.faults.sent().len(), sent);
        app.faults.heal();
        app.assert_ledger_equals_chain().await;
    }

    async fn claims_wait_for_lower_fees_too(store: Store) {
        let Scene { app, ada, key, market } = scene_with_ceiling(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.resolve(market, 0).await;
        app.run_workers().await;
        app.faults.always("eth_feeHistory", Fault::Answer(HIGH_FEES));
        let claim = key.redeemed(&market, 0).await;
        app.run_workers().await;
        assert!(app.claim(&ada, claim.id).await.ended_at.is_none());
        app.faults.heal();
        app.advance_ms(1_000).await;
        app.run_workers().await;
        assert!(app.claim(&ada, claim.id).await.ended_at.is_some());
        app.assert_ledger_equals_chain().await;
    }

    async fn a_trade_above_the_hourly_cap_does_not_delay_smaller_ones(store: Store) {
        let (Scene { app, key, market, .. }, bob, cleo) = scene_with_cap(store).await;
        let washed = key.buy(&market, 0, "80").await;
        app.run_workers().await;
        let large = bob.buy(&market, 0, "30").await;
        let small = cleo.buy(&market, 0, "15").await;
        // Bob's trades keep their order.
        app.clock.advance(1);
        let behind = bob.buy(&market, 0, "1").await;
        app.run_workers().await;
        for id in [washed.id, small.id] {
            assert_eq!(app.status(id).await, Status::Completed);
        }
        for id in [large.id, behind.id] {
            assert_eq!(app.status(id).await, Status::Pending);
            assert_eq!(holds(&app, id).await, ["hourly_volume"]);
        }
        let last = cleo.buy(&market, 0, "5").await;
        app.run_workers().await;
        assert_eq!(app.status(last.id).await, Status::Completed, "the last of the hour is used");
        app.advance_ms(10 * MINUTE_MS).await;
        app.run_workers().await;
        let message = "The deadline passed while the hourly volume of all trades was exhausted.";
        assert_eq!(expiry_of(&app, large.id).await, (ErrorCode::RequestTimeout, message.to_owned()));
        app.assert_ledger_equals_chain().await;
    }

    async fn a_waiting_trade_executes_when_the_hourly_cap_has_refilled(store: Store) {
        let (Scene { app, key, market, .. }, bob, _) = scene_with_cap(store).await;
        key.buy(&market, 0, "80").await;
        app.run_workers().await;
        // Nothing is mined until a sixth of the hour has passed. Then 36 USDC are left, and 50
        // eight minutes later.
        app.clock.advance(10 * MINUTE_MS);
        let large = bob.buy(&market, 0, "45").await;
        app.run_workers().await;
        assert_eq!(app.status(large.id).await, Status::Pending);
        app.advance_ms(8 * MINUTE_MS).await;
        app.run_workers().await;
        assert_eq!(app.status(large.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn hundreds_of_waiting_trades_do_not_block_a_small_one(store: Store) {
        let (Scene { app, key, market, .. }, bob, _) = scene_with_cap(store).await;
        key.buy(&market, 0, "50").await;
        app.run_workers().await;
        for _ in 0..120 {
            app.clock.advance(1);
            key.buy(&market, 0, "60").await;
        }
        let small = bob.buy(&market, 0, "10").await;
        let sent = app.faults.sent().len();
        app.run_workers().await;
        assert_eq!(app.status(small.id).await, Status::Completed);
        assert_eq!(app.faults.sent().len(), sent + 1);
        assert_eq!(count_held(&app).await, [(HoldReason::HourlyVolume, 120)]);
    }

    async fn sales_execute_at_the_hourly_cap_and_restore_part_of_it(store: Store) {
        let (Scene { app, key, market, .. }, bob, _) = scene_with_cap(store).await;
        key.buy(&market, 0, "100").await;
        app.run_workers().await;
        let waits = bob.buy(&market, 1, "10").await;
        app.run_workers().await;
        assert_eq!(app.status(waits.id).await, Status::Pending);
        let sale = key.sell_all(&market, 0).with(|draft| draft.max_slippage_bps = Some(10_000)).await;
        app.run_workers().await;
        assert_eq!(app.status(sale.id).await, Status::Completed);
        app.run_workers().await;
        assert_eq!(app.status(waits.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn signed_trades_count_towards_the_hourly_cap(store: Store) {
        let (Scene { app, key, market, .. }, bob, cleo) = scene_with_cap(store).await;
        app.faults.every_send(Fault::NeverMined);
        let first = key.buy(&market, 0, "80").await;
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.status(first.id).await, Status::Executing);
        let large = bob.buy(&market, 0, "30").await;
        let small = cleo.buy(&market, 0, "20").await;
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.status(large.id).await, Status::Pending);
        assert_eq!(app.status(small.id).await, Status::Executing);
    }
}
