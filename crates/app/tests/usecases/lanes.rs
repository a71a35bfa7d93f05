//! Lanes are rows that operators change while the service runs. No trade is lost or executed twice,
//! and the trades of an account keep their order.

use alloy_primitives::{Address, U256};
use app::lanes::SignerPlace;
use app::roles::RoleChange;
use app::worker::Worker;
use app::{AppError, InvalidState, lanes};
use chain::{Signer, calls};
use domain::ids::TradeId;
use domain::key::Tier;
use domain::lane::LaneState;
use domain::redemption::RedemptionStatus;
use domain::time::MINUTE_MS;
use domain::trade::Status;
use serde_json::{Value, json};
use store::lanes::Lane;
use store::{Store, StoreError};
use testkit::{Fault, TestApp, TestKey, TestMarket, signer};

use crate::audit_log::{entries, operator};

async fn rows(app: &TestApp) -> Vec<Lane> {
    app.ctx.store.read((), |tx, ()| Box::pin(store::lanes::list(tx))).await.unwrap()
}

async fn state(app: &TestApp, lane: usize) -> (LaneState, bool) {
    let row = rows(app).await.swap_remove(lane);
    (row.state, row.hands_over)
}

fn executor(app: &TestApp, lane: u16) -> Address {
    app.roles.executors[usize::from(lane)].address()
}

/// Creates a key whose account is assigned to the lane.
async fn key_in(app: &TestApp, lane: u16) -> TestKey {
    for n in 0..64 {
        let user = app.user(&format!("user {n} of {lane}")).await;
        if app.ctx.process.lanes.of(user.account) == lane {
            app.mint(user.account, domain::Usdc::from_whole(1_000)).await;
            return app.key(&user, Tier::Mm).await;
        }
    }
    panic!("no account is assigned to lane {lane}");
}

async fn buys(app: &TestApp, key: &TestKey, market: &TestMarket, count: usize) -> Vec<TradeId> {
    let mut trades = Vec::with_capacity(count);
    for _ in 0..count {
        app.clock.advance(1);
        trades.push(key.buy(market, 0, "1").await.id);
    }
    trades
}

/// Returns the trades of an account in the order in which the chain executed them.
async fn made(app: &TestApp, of: &[TradeId]) -> Vec<TradeId> {
    const SQL: &str = "SELECT trade_id FROM movements WHERE trade_id IS NOT NULL ORDER BY id";
    let read: Result<Vec<TradeId>, StoreError> =
        app.ctx.store.read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| row.get("trade_id")))).await;
    let mut made = read.unwrap();
    made.retain(|id| of.contains(id));
    made
}

async fn two_lanes(store: Store) -> (TestApp, TestMarket) {
    let app = TestApp::with().on(store).lanes(2).start().await;
    let market = app.market(&["Yes", "No"]).await;
    (app, market)
}

/// Takes the right of a lane's executor away on the Gate.
async fn revoke(app: &TestApp, lane: u16) {
    let gate = app.ctx.chain.contracts().gate;
    app.send(&app.roles.guardian, gate, calls::lower_executor(executor(app, lane), 0)).await;
}

/// Runs the workers until trades that waited for other lanes are done, too.
async fn run(app: &TestApp) {
    for _ in 0..4 {
        app.run_workers().await;
    }
}

async fn assert_completed(app: &TestApp, trades: &[TradeId]) {
    for id in trades {
        assert_eq!(app.status(*id).await, Status::Completed);
    }
    assert_eq!(
        app.rows().await.movements,
        i64::try_from(trades.len()).unwrap(),
        "each trade is executed once"
    );
    app.assert_ledger_equals_chain().await;
}

fn invalid(refused: &AppError) -> &str {
    let state = refused.source.as_ref().and_then(|source| source.downcast_ref::<InvalidState>());
    &state.unwrap_or_else(|| panic!("not a state: {refused:?}")).0
}

store::on_each_engine! {
    async fn configured_executors_get_lanes_in_their_order_and_keep_them(store: Store) {
        let app = TestApp::with().on(store).lanes(3).start().await;
        let numbered = |rows: Vec<Lane>| rows.into_iter().map(|row| (row.lane, row.executor)).collect::<Vec<_>>();
        let expected: Vec<_> = (0..3).map(|lane| (lane, executor(&app, lane))).collect();
        assert_eq!(numbered(rows(&app).await), expected);
        lanes::drain(&app.ctx, executor(&app, 1)).await.unwrap();
        lanes::register(&app.ctx).await.unwrap();
        assert_eq!(numbered(rows(&app).await), expected);
        assert_eq!(state(&app, 1).await, (LaneState::Draining, false), "a restart does not undo it");
    }

    async fn a_draining_lane_gets_no_new_trades_and_finishes_what_it_has(store: Store) {
        let (app, market) = two_lanes(store).await;
        let key = key_in(&app, 1).await;
        let mut trades = buys(&app, &key, &market, 2).await;
        lanes::drain(&app.ctx, executor(&app, 1)).await.unwrap();
        trades.extend(buys(&app, &key, &market, 2).await);
        let mut of = Vec::new();
        for id in &trades {
            of.push(app.trade(*id).await.lane);
        }
        assert_eq!(of, [1, 1, 0, 0]);
        run(&app).await;
        assert_eq!(app.trade(trades[0]).await.lane, 1, "it was not handed over");
        assert_completed(&app, &trades).await;
    }

    async fn a_trade_waits_for_older_ones_of_its_account_in_other_lanes(store: Store) {
        let (app, market) = two_lanes(store).await;
        let (key, other) = (key_in(&app, 1).await, key_in(&app, 0).await);
        let old = buys(&app, &key, &market, 2).await;
        lanes::drain(&app.ctx, executor(&app, 1)).await.unwrap();
        let new = buys(&app, &key, &market, 2).await;
        let free = buys(&app, &other, &market, 1).await;
        for _ in 0..3 {
            app.workers.executors[0].tick(&app.ctx).await.unwrap();
        }
        assert_eq!(app.status(free[0]).await, Status::Executing, "other accounts do not wait");
        for id in &new {
            assert_eq!(app.status(*id).await, Status::Pending);
        }
        run(&app).await;
        let all = [old, new].concat();
        assert_eq!(made(&app, &all).await, all);
        assert_completed(&app, &[all, free].concat()).await;
    }

    async fn the_wait_for_other_lanes_ends(store: Store) {
        let (app, market) = two_lanes(store).await;
        let key = key_in(&app, 1).await;
        lanes::drain(&app.ctx, executor(&app, 1)).await.unwrap();
        assert!(rows(&app).await[0].settles_after.is_some());
        app.advance_ms(MINUTE_MS + 1).await;
        let trades = buys(&app, &key, &market, 1).await;
        run(&app).await;
        assert_eq!(rows(&app).await[0].settles_after, None);
        assert_completed(&app, &trades).await;
    }

    async fn trades_of_an_executor_without_its_right_continue_in_another_lane(store: Store) {
        let (app, market) = two_lanes(store).await;
        let (key, other) = (key_in(&app, 1).await, key_in(&app, 0).await);
        let mut trades = buys(&app, &key, &market, 3).await;
        trades.extend(buys(&app, &other, &market, 2).await);
        revoke(&app, 1).await;
        run(&app).await;
        assert_eq!(state(&app, 1).await, (LaneState::Draining, true));
        assert_eq!(made(&app, &trades[..3]).await, trades[..3]);
        assert_completed(&app, &trades).await;
        let later = buys(&app, &key, &market, 1).await;
        assert_eq!(app.trade(later[0]).await.lane, 0);
    }

    async fn a_batch_that_the_gate_refuses_is_executed_once_by_another_lane(store: Store) {
        let (app, market) = two_lanes(store).await;
        let key = key_in(&app, 1).await;
        let trades = buys(&app, &key, &market, 3).await;
        // The batch is signed and stored, but lost on its way. It arrives after the removal.
        app.faults.next_send(Fault::LostRequest);
        app.workers.executors[1].tick(&app.ctx).await.unwrap();
        let mut nonces = Vec::new();
        for id in &trades {
            nonces.push(app.trade(*id).await.nonce.unwrap());
        }
        revoke(&app, 1).await;
        let later = buys(&app, &key, &market, 1).await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        run(&app).await;
        for (id, nonce) in trades.iter().zip(nonces) {
            let trade = app.trade(*id).await;
            assert_eq!((trade.lane, trade.nonce), (0, Some(nonce)), "the same intent, in another lane");
        }
        let all = [trades, later].concat();
        assert_eq!(made(&app, &all).await, all);
        assert_completed(&app, &all).await;
    }

    async fn a_removed_lane_hands_its_queue_over_in_order(store: Store) {
        let (app, market) = two_lanes(store).await;
        let (key, other) = (key_in(&app, 1).await, key_in(&app, 0).await);
        // The queues have ranks that cannot be compared.
        let before = buys(&app, &other, &market, 5).await;
        app.run_workers().await;
        let old = buys(&app, &key, &market, 4).await;
        let there = buys(&app, &other, &market, 3).await;
        lanes::drain(&app.ctx, executor(&app, 1)).await.unwrap();
        let new = buys(&app, &key, &market, 2).await;
        lanes::remove(&app.ctx, executor(&app, 1)).await.unwrap();
        assert_eq!(state(&app, 1).await, (LaneState::Removed, true));
        run(&app).await;
        let own = [old, new].concat();
        assert_eq!(made(&app, &own).await, own);
        let both = made(&app, &[&own[..], &there[..]].concat()).await;
        let last_of_other = both.iter().position(|id| *id == there[2]).unwrap();
        assert!(last_of_other <= 5, "users take turns: {both:?}");
        assert_completed(&app, &[own, there, before].concat()).await;
    }

    async fn a_process_that_has_not_read_the_lanes_again_loses_no_trade(store: Store) {
        let (app, market) = two_lanes(store).await;
        let key = key_in(&app, 1).await;
        let late = key.in_process(app.ctx_of_another_process());
        lanes::remove(&app.ctx, executor(&app, 1)).await.unwrap();
        let mut trades = buys(&app, &key, &market, 1).await;
        trades.extend(buys(&app, &late, &market, 1).await);
        trades.extend(buys(&app, &key, &market, 1).await);
        assert_eq!(app.trade(trades[1]).await.lane, 1);
        run(&app).await;
        assert_eq!(made(&app, &trades).await, trades);
        assert_completed(&app, &trades).await;
    }

    async fn changes_of_delegations_leave_a_removed_lane(store: Store) {
        let (app, _) = two_lanes(store).await;
        let key = key_in(&app, 1).await;
        let revoked = app::keys::revoke(&app.ctx, key.caller.key.id).await.unwrap();
        assert_eq!(revoked.on_chain.lane, 1);
        lanes::remove(&app.ctx, executor(&app, 1)).await.unwrap();
        run(&app).await;
        let change = app::delegations::find(&app.ctx, revoked.on_chain.id).await.unwrap().unwrap();
        assert_eq!((change.lane, change.status), (0, domain::delegation::Status::Mined));
    }

    async fn an_added_lane_gets_accounts_once_a_process_runs_it(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let market = app.market(&["Yes", "No"]).await;
        let new = signer(150);
        let ctx = operator(&app.ctx);
        let refused = lanes::activate(&ctx, new.address(), &SignerPlace::File).await.unwrap_err();
        assert_eq!(invalid(&refused), format!("{} is not an executor of the Gate", new.address()));
        add_to_gate(&app, &new).await;
        let wei = U256::from(10).pow(U256::from(18));
        lanes::fund(&ctx, &app.roles.deployer, new.address(), wei).await.unwrap();
        let lane = lanes::activate(&ctx, new.address(), &SignerPlace::File).await.unwrap();
        assert_eq!(lane.lane, 1);
        let user = app.user("first").await;
        assert_eq!(app.ctx.process.lanes.of(user.account), 0, "no process runs the lane yet");
        let executor = app::trades::Executor::new(1, new.clone(), "two".to_owned());
        executor.tick(&app.ctx).await.unwrap();
        let key = key_in(&app, 1).await;
        let trades = buys(&app, &key, &market, 2).await;
        for _ in 0..4 {
            executor.tick(&app.ctx).await.unwrap();
            app.run_workers().await;
        }
        assert_completed(&app, &trades).await;
    }

    async fn changes_of_lanes_are_in_the_audit_log_with_before_and_after(store: Store) {
        let (app, _) = two_lanes(store).await;
        let ctx = operator(&app.ctx);
        let address = executor(&app, 1);
        lanes::drain(&ctx, address).await.unwrap();
        lanes::activate(&ctx, address, &SignerPlace::File).await.unwrap();
        lanes::remove(&ctx, address).await.unwrap();
        let subject = format!("executor:{}", address.to_string().to_lowercase());
        let states: Vec<_> = entries(&ctx)
            .await
            .into_iter()
            .filter(|entry| entry.subject == subject)
            .map(|entry| {
                let state = |text: Option<String>| {
                    serde_json::from_str::<Value>(&text.unwrap()).unwrap()["state"].clone()
                };
                (entry.action, state(entry.before), state(entry.after))
            })
            .collect();
        let expected = [
            ("executor.drain", "active", "draining"),
            ("executor.add", "draining", "active"),
            ("executor.remove-lane", "active", "removed"),
        ];
        let expected = expected.map(|(action, before, after)| (action.to_owned(), json!(before), json!(after)));
        assert_eq!(states, expected);
    }

    async fn the_last_active_lane_cannot_be_drained(store: Store) {
        let (app, market) = two_lanes(store).await;
        lanes::drain(&app.ctx, executor(&app, 0)).await.unwrap();
        let refused = lanes::drain(&app.ctx, executor(&app, 1)).await.unwrap_err();
        assert!(invalid(&refused).starts_with("no other lane is active"), "{refused:?}");
        // And an executor without its right keeps the trades that no other lane could take.
        let key = key_in(&app, 1).await;
        let trade = key.buy(&market, 0, "1").await;
        revoke(&app, 1).await;
        run(&app).await;
        assert_eq!(state(&app, 1).await, (LaneState::Active, false));
        assert!(!app.status(trade.id).await.is_terminal());
    }
}

async fn add_to_gate(app: &TestApp, new: &Signer) {
    let cap = domain::Usdc::from_whole(10_000).atomic();
    RoleChange::ProposeExecutor(new.address(), cap).make(&app.ctx, &app.roles.owner).await.unwrap();
    RoleChange::EnactExecutor(new.address()).make(&app.ctx, &app.roles.owner).await.unwrap();
}

#[tokio::test]
async fn redemptions_continue_when_the_first_lane_is_drained() {
    let app = TestApp::with().lanes(2).start().await;
    let market = app.market(&["Yes", "No"]).await;
    let key = key_in(&app, 0).await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    app.resolve(market, 0).await;
    app.run_workers().await;
    lanes::drain(&app.ctx, executor(&app, 0)).await.unwrap();
    key.redeemed(&market, 0).await;
    app.workers.executors[0].tick(&app.ctx).await.unwrap();
    assert_ne!(key.redeemed_before(&market, 0).await.status, RedemptionStatus::Completed);
    run(&app).await;
    assert_eq!(key.redeemed_before(&market, 0).await.status, RedemptionStatus::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn money_is_sent_only_to_executors() {
    let app = TestApp::new().await;
    let (ctx, wei) = (operator(&app.ctx), U256::from(7));
    let stranger = app.roles.stranger.address();
    let refused = lanes::fund(&ctx, &app.roles.deployer, stranger, wei).await.unwrap_err();
    assert_eq!(invalid(&refused), format!("{stranger} is not an executor"));
    let executor = executor(&app, 0);
    let before = ctx.chain.native_balance(executor).await.unwrap();
    lanes::fund(&ctx, &app.roles.deployer, executor, wei).await.unwrap();
    assert_eq!(ctx.chain.native_balance(executor).await.unwrap(), before + wei);
    let logged = entries(&ctx).await;
    let phases: Vec<_> = logged.iter().map(|entry| (entry.action.as_str(), entry.phase.as_str())).collect();
    assert_eq!(phases, [("executor.fund", "begun"), ("executor.fund", "done")]);
}
