//! The gas treasury sends native currency to executors that are low, and never more than its daily
//! cap.

use alloy_primitives::U256;
use app::lanes::GasTreasury;
use app::worker::{Progress, Worker};
use domain::time::DAY_MS;
use store::Store;
use testkit::{Fault, TestApp};

const ETHER: u128 = 1_000_000_000_000_000_000;

fn treasury(app: &TestApp, cap: u128, owner: &str) -> GasTreasury {
    GasTreasury::new(app.roles.treasury.clone(), cap, owner.to_owned())
}

async fn balance(app: &TestApp, lane: usize) -> u128 {
    let executor = app.roles.executors[lane].address();
    u128::try_from(app.ctx.chain.native_balance(executor).await.unwrap()).unwrap()
}

/// Sends the lane's native currency away, except for a tenth of an ether.
async fn empty(app: &TestApp, lane: usize) {
    let rest = balance(app, lane).await - ETHER / 10;
    let executor = &app.roles.executors[lane];
    app.ctx.chain.send_native(executor, app.roles.stranger.address(), U256::from(rest)).await.unwrap();
}

async fn two_lanes(store: Store) -> TestApp {
    let app = TestApp::with().on(store).lanes(2).start().await;
    empty(&app, 1).await;
    app
}

store::on_each_engine! {
    async fn an_executor_that_is_low_is_topped_up_once(store: Store) {
        let app = two_lanes(store).await;
        let before = [balance(&app, 0).await, balance(&app, 1).await];
        let treasury = treasury(&app, 1_000 * ETHER, "one");
        assert_eq!(treasury.tick(&app.ctx).await.unwrap(), Progress::More);
        assert_eq!(treasury.tick(&app.ctx).await.unwrap(), Progress::Idle, "it has enough now");
        assert_eq!(balance(&app, 0).await, before[0], "it had enough");
        assert!(balance(&app, 1).await > before[1] + ETHER);
    }

    async fn the_daily_cap_holds_also_after_a_restart(store: Store) {
        let app = two_lanes(store).await;
        let (before, cap) = (balance(&app, 1).await, ETHER);
        let first = treasury(&app, cap, "one");
        assert_eq!(first.tick(&app.ctx).await.unwrap(), Progress::More);
        assert_eq!(first.tick(&app.ctx).await.unwrap(), Progress::Idle);
        first.release(&app.ctx).await.unwrap();
        let second = treasury(&app, cap, "two");
        assert_eq!(second.tick(&app.ctx).await.unwrap(), Progress::Idle);
        let paid = balance(&app, 1).await - before;
        assert!(paid > cap / 2 && paid <= cap, "{paid}");
        app.advance_ms(DAY_MS + 1).await;
        assert_eq!(second.tick(&app.ctx).await.unwrap(), Progress::More, "another day");
        assert!(balance(&app, 1).await - before > cap);
    }

    async fn a_payment_without_an_answer_counts_toward_the_cap(store: Store) {
        let app = two_lanes(store).await;
        let before = balance(&app, 1).await;
        app.faults.next_send(Fault::LostRequest);
        treasury(&app, ETHER, "one").tick(&app.ctx).await.unwrap_err();
        let sent = app.faults.sent().len();
        app.advance_ms(app.ctx.config.lease_ms).await;
        assert_eq!(treasury(&app, ETHER, "two").tick(&app.ctx).await.unwrap(), Progress::Idle);
        assert_eq!((app.faults.sent().len(), balance(&app, 1).await), (sent, before));
    }
}
